# SPDX-License-Identifier: MIT
# Units for systemd and a drop-in for GPUs. Their path of the daemon is the installed one.
# contrib/settings.sh writes the document with all defaults and its schema.
UNITS = %D%/pted.service %D%/pted.socket
CONF_MADE = %D%/pted.service %D%/pted-gpu.conf
systemdsystemunit_DATA = $(UNITS)
doc_DATA = %D%/pted-gpu.conf
dist_pkgdata_DATA = %D%/pted.json %D%/pted.schema.json %D%/pted-card.schema.json
EXTRA_DIST += %D%/pted.service.in %D%/pted-gpu.conf.in %D%/pted.socket
CLEANFILES += $(CONF_MADE)

$(CONF_MADE): Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's|@bindir[@]|$(bindir)|g' $(srcdir)/$@.in >$@.tmp && mv $@.tmp $@
%D%/pted.service: $(srcdir)/%D%/pted.service.in
%D%/pted-gpu.conf: $(srcdir)/%D%/pted-gpu.conf.in
