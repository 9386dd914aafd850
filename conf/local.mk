# SPDX-License-Identifier: MIT
# Units for systemd, with the installed path of the daemon put in.
UNITS = %D%/pted.service %D%/pted.socket
systemdsystemunit_DATA = $(UNITS)
EXTRA_DIST += %D%/pted.service.in %D%/pted.socket
CLEANFILES += %D%/pted.service

%D%/pted.service: $(srcdir)/%D%/pted.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's|@bindir[@]|$(bindir)|g' $(srcdir)/%D%/pted.service.in >$@.tmp && \
		mv $@.tmp $@
