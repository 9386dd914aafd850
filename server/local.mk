# SPDX-License-Identifier: MIT
# The daemon and its companion, one program. main() is small. The rest is in archives, from the top
# down.
SERVER_CFLAGS = $(AM_CFLAGS) $(UV_CFLAGS) $(LLHTTP_CFLAGS) $(NGHTTP2_CFLAGS) $(ZLIB_CFLAGS) $(CJSON_CFLAGS) \
	$(OPENSSL_CFLAGS) $(CURL_CFLAGS)
SERVER_BELOW_DAEMON = %D%/cli/libcli.a %D%/profile/libprofile.a \
	%D%/model/libmodel.a %D%/model/intake/libintake.a %D%/language/liblanguage.a \
	%D%/model/card/libcard.a %D%/model/answer/libanswer.a %D%/daemon/console/libconsole.a \
	$(TEXT_LIBS) %D%/media/libmedia.a %D%/http/libhttp.a %D%/process/libprocess.a \
	$(LLHTTP_ARCHIVE) \
	$(API_LIBS) $(UV_LIBS) $(LLHTTP_LIBS) $(NGHTTP2_LIBS) $(ZLIB_LIBS) $(CJSON_LIBS)
SERVER_LIBS = $(DAEMON_LIBS) $(SERVER_BELOW_DAEMON)

include server/daemon/local.mk
include server/cli/local.mk
include server/profile/local.mk
include server/model/local.mk
include server/model/intake/local.mk
include server/model/card/local.mk
include server/model/answer/local.mk
include server/language/local.mk
include server/text/local.mk
include server/media/local.mk
include server/http/local.mk
include server/process/local.mk

bin_PROGRAMS += pted
pted_SOURCES = %D%/main.c
pted_CFLAGS = $(SERVER_CFLAGS)
pted_LDADD = $(SERVER_LIBS)
%D%/pted-main.$(OBJEXT): commit.h

# A link that has no path of its own: who follows links to the end still finds the name.
noinst_DATA += pte
CLEANFILES += pte
pte: pted
	$(AM_V_at)rm -f $@ && { ln pted $@ 2>/dev/null || cp -p pted $@; }

install-exec-hook: install-pte
uninstall-hook: uninstall-pte
pte_name = "`echo pte | sed '$(transform)'`"
install-pte:
	cd '$(DESTDIR)$(bindir)' && rm -f $(pte_name) && \
		$(LN_S) "`echo pted | sed '$(transform)'`" $(pte_name)
uninstall-pte:
	rm -f '$(DESTDIR)$(bindir)'/$(pte_name)

# llhttp from C sources that the system installs. They are compiled here, but never copied, in
# strict mode and without our warnings.
if LLHTTP_SOURCES
LLHTTP_ARCHIVE = %D%/libllhttp.a
LLHTTP_OBJECTS = %D%/llhttp-llhttp.o %D%/llhttp-api.o %D%/llhttp-http.o
CLEANFILES += $(LLHTTP_ARCHIVE) $(LLHTTP_OBJECTS)

%D%/llhttp-llhttp.o: $(LLHTTP_DIR)/llhttp.c
%D%/llhttp-api.o: $(LLHTTP_DIR)/api.c
%D%/llhttp-http.o: $(LLHTTP_DIR)/http.c
$(LLHTTP_OBJECTS):
	$(AM_V_CC)$(MKDIR_P) %D% && $(CC) -DLLHTTP_STRICT_MODE=1 $(LLHTTP_CFLAGS) $(CPPFLAGS) \
		$(SANITIZE_CFLAGS) $(CFLAGS) -c -o $@ "$(LLHTTP_DIR)"/$(@F:llhttp-%.o=%.c)

$(LLHTTP_ARCHIVE): $(LLHTTP_OBJECTS)
	$(AM_V_AR)rm -f $@ && $(AR) $(ARFLAGS) $@ $(LLHTTP_OBJECTS)
endif
