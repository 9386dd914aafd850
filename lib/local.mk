# SPDX-License-Identifier: MIT
# libpted: the runtime with one public header. The archive libapi.a is what our own programs link;
# libpted.a and libpted.so are what is installed, with no symbols but those of pted.h.
noinst_LIBRARIES += %D%/libapi.a
%C%_libapi_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libapi_a_SOURCES = \
	%D%/call.c \
	%D%/call_values.c \
	%D%/cards.h \
	%D%/device.c \
	%D%/error.c \
	%D%/info.c \
	%D%/inside.h \
	%D%/profile.c \
	%D%/program.c \
	%D%/pted.h \
	%D%/shapes.c \
	%D%/state.c
API_LIBS = %D%/libapi.a $(RUNTIME_LIBS)

# The number of the soname changes when a symbol goes or changes; the others count additions and
# corrections.
LIBPTED_SONAME = libpted.so.1
LIBPTED_FILE = $(LIBPTED_SONAME).0.0

EXTRA_DIST += %D%/pted.map
if HAVE_LIBRARY
include_HEADERS = %D%/pted.h
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = %D%/pted.pc
noinst_DATA += %D%/libpted.a %D%/$(LIBPTED_FILE) %D%/$(LIBPTED_SONAME) %D%/libpted.so
CLEANFILES += %D%/libpted.a %D%/libpted.o %D%/$(LIBPTED_FILE) %D%/$(LIBPTED_SONAME) %D%/libpted.so

# Linked here and not by libtool, which would compile each file twice and slow configure down. All
# objects are PIC, which costs nothing where symbols are hidden.
%D%/$(LIBPTED_FILE): $(%C%_libapi_a_OBJECTS) $(RUNTIME_LIBS) %D%/pted.map
	$(AM_V_CCLD)$(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -shared -o $@ \
		-Wl,-soname,$(LIBPTED_SONAME) -Wl,--version-script,$(srcdir)/%D%/pted.map \
		-Wl,-z,relro -Wl,-z,nodelete $(NO_UNDEFINED) $(%C%_libapi_a_OBJECTS) $(RUNTIME_LIBS) \
		$(LIBPTED_LIBS)
%D%/$(LIBPTED_SONAME): %D%/$(LIBPTED_FILE)
	$(AM_V_at)cd %D% && rm -f $(LIBPTED_SONAME) && $(LN_S) $(LIBPTED_FILE) $(LIBPTED_SONAME)
%D%/libpted.so: %D%/$(LIBPTED_SONAME)
	$(AM_V_at)cd %D% && rm -f libpted.so && $(LN_S) $(LIBPTED_SONAME) libpted.so

# One object, in which only the functions of pted.h are global: our names are not in the way of those
# of programs.
%D%/libpted.a: $(%C%_libapi_a_OBJECTS) $(RUNTIME_LIBS)
	$(AM_V_AR)rm -f $@ && $(CC) $(CFLAGS) $(RELOCATABLE) -o %D%/libpted.o \
		$(%C%_libapi_a_OBJECTS) $(RUNTIME_LIBS) && \
		$(OBJCOPY) -w --keep-global-symbol='pted_*' %D%/libpted.o && \
		$(AR) $(ARFLAGS) $@ %D%/libpted.o && $(RANLIB) $@ && rm -f %D%/libpted.o

install-exec-local: install-libpted
uninstall-local: uninstall-libpted
install-libpted: %D%/libpted.a %D%/$(LIBPTED_FILE)
	$(MKDIR_P) '$(DESTDIR)$(libdir)'
	$(INSTALL_DATA) %D%/libpted.a '$(DESTDIR)$(libdir)/libpted.a'
	$(INSTALL_DATA) %D%/$(LIBPTED_FILE) '$(DESTDIR)$(libdir)/$(LIBPTED_FILE)'
	cd '$(DESTDIR)$(libdir)' && rm -f $(LIBPTED_SONAME) libpted.so && \
		$(LN_S) $(LIBPTED_FILE) $(LIBPTED_SONAME) && $(LN_S) $(LIBPTED_SONAME) libpted.so
uninstall-libpted:
	for name in libpted.a libpted.so $(LIBPTED_SONAME) $(LIBPTED_FILE); do \
		rm -f '$(DESTDIR)$(libdir)'/$$name; done
endif
