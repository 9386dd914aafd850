# SPDX-License-Identifier: MIT

# PTED_TRY_CFLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if the compiler accepts it.
AC_DEFUN([PTED_TRY_CFLAG], [
    pted_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_MSG_CHECKING([whether $CC takes $1])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes]); $2="$$2 $1"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$pted_saved_CFLAGS
])

# PTED_SONAME(VARIABLE, MODULE, LIBRARY, PACKAGE): PTED_SONAME_VARIABLE is the name of the library beside
# the headers of pkg-config's MODULE, whose structs it shares, and PTED_PACKAGE_VARIABLE Debian's package
# of it, for messages: PACKAGE if dpkg does not say. If libraries are linked in, that name is the library's
# with its version.
AC_DEFUN([PTED_SONAME], [
    AC_REQUIRE([PTED_PROG_READELF])
    AS_IF([test "x$enable_linked_libraries" = xyes],
        [pted_soname="lib$3 `$PKG_CONFIG --modversion $2`" pted_package=$4],
        [PTED_FIND_SONAME([$2], [$3], [$4])])
    AC_DEFINE_UNQUOTED([PTED_SONAME_$1], ["$pted_soname"], [The library $3, opened at run time or linked in])
    AC_DEFINE_UNQUOTED([PTED_PACKAGE_$1], ["$pted_package"], [Its package in Debian])
])
# PTED_FIND_SONAME(MODULE, LIBRARY, PACKAGE): sets pted_soname and pted_package.
AC_DEFUN([PTED_FIND_SONAME], [
    AC_MSG_CHECKING([for the soname of lib$2])
    pted_file=`$PKG_CONFIG --variable=libdir $1`/lib$2.so
    AS_IF([test ! -f "$pted_file"], [pted_file=`$CC $CFLAGS $LDFLAGS -print-file-name=lib$2.so`])
    pted_soname=`$READELF -d "$pted_file" 2>/dev/null | sed -n 's/.*(SONAME).*\@<:@\(.*\)\@:>@.*/\1/p'`
    AS_IF([test -z "$pted_soname"], [AC_MSG_ERROR([$pted_file is no shared library with a soname])])
    pted_package=`dpkg-query -S "\`readlink -f "$pted_file"\`" 2>/dev/null | sed -n '1s/:.*//p'`
    test -n "$pted_package" || pted_package=$3
    AC_MSG_RESULT([$pted_soname ($pted_package)])
])
AC_DEFUN([PTED_PROG_READELF], [AC_CHECK_TOOL([READELF], [readelf], [readelf])])

# PTED_OPENED(VARIABLE, MODULE, VERSION, NAME, DEBIAN, FEDORA, LIBRARY, PACKAGE): a library whose headers
# are needed (packages DEBIAN and FEDORA), and which pted opens at run time, or is linked with.
AC_DEFUN([PTED_OPENED], [
    PKG_CHECK_MODULES([$1], [$2 >= $3], [],
        [AC_MSG_ERROR([$4 $3 or newer is missing: install $5 (Debian) or $6 (Fedora)])])
    PTED_SONAME([$1], [$2], [$7], [$8])
    AS_IF([test "x$enable_linked_libraries" = xyes], [LINKED_LIBS="$$1_LIBS $LINKED_LIBS"])
])

# PTED_CHECK_LLHTTP: finds the system's llhttp: libllhttp if pkg-config knows it, else the C sources that
# Debian 12's node-llhttp installs. Those are compiled into an archive in the build tree.
AC_DEFUN([PTED_CHECK_LLHTTP], [
    AC_ARG_WITH([llhttp-sources],
        [AS_HELP_STRING([--with-llhttp-sources=DIR], [folder of llhttp.c, api.c, http.c (default /usr/share/llhttp)])],
        [llhttp_dir=$withval], [llhttp_dir=/usr/share/llhttp])
    AC_ARG_WITH([llhttp-include],
        [AS_HELP_STRING([--with-llhttp-include=DIR], [folder of llhttp.h beside those sources])],
        [llhttp_include=$withval], [llhttp_include=/usr/share/include/llhttp])
    llhttp_sources=no
    PKG_CHECK_MODULES([LLHTTP], [libllhttp], [llhttp_from=libllhttp], [
        AS_IF([test -f "$llhttp_dir/llhttp.c" && test -f "$llhttp_dir/api.c" &&
               test -f "$llhttp_dir/http.c" && test -f "$llhttp_include/llhttp.h"],
            [llhttp_sources=yes
             llhttp_from=$llhttp_dir
             LLHTTP_CFLAGS="-isystem $llhttp_include"
             LLHTTP_LIBS=],
            [AC_MSG_ERROR([llhttp not found: install libllhttp-dev (Debian 13), node-llhttp (Debian 12) or llhttp-devel (Fedora)])])
    ])
    AC_SUBST([LLHTTP_CFLAGS])
    AC_SUBST([LLHTTP_LIBS])
    AC_SUBST([LLHTTP_DIR], [$llhttp_dir])
    AM_CONDITIONAL([LLHTTP_SOURCES], [test $llhttp_sources = yes])
])

# PTED_CHECK_LIBRARY: sets enable_libpted to no if the linker makes no shared libraries, as with
# LDFLAGS=-static; NO_UNDEFINED, RELOCATABLE: options of the linker.
AC_DEFUN([PTED_CHECK_LIBRARY], [
    pted_saved_LDFLAGS=$LDFLAGS
    pted_saved_CFLAGS=$CFLAGS
    CFLAGS="$PIC_CFLAGS $CFLAGS"
    LDFLAGS="$LDFLAGS -shared"
    AC_MSG_CHECKING([whether $CC makes shared libraries])
    AC_LINK_IFELSE([AC_LANG_SOURCE([int pted_answer(void) { return 42; }])],
        [AC_MSG_RESULT([yes]); pted_shared=yes], [AC_MSG_RESULT([no]); pted_shared=no])
    # The functions of sanitizers are the program's.
    AS_IF([test "x$SANITIZE_CFLAGS" = x && test "x${CFLAGS@%:@*-fsanitize}" = "x$CFLAGS"],
        [NO_UNDEFINED=-Wl,-z,defs])
    LDFLAGS=$pted_saved_LDFLAGS
    CFLAGS=$pted_saved_CFLAGS
    RELOCATABLE="-r -nostdlib"
    AS_IF([test "x$OBJCOPY" = x && test "x$enable_libpted" = xyes],
        [AC_MSG_ERROR([--enable-libpted: objcopy is missing: install binutils])])
    AS_IF([test "x$OBJCOPY" = x], [pted_shared=no])
    AS_IF([test $pted_shared = no && test "x$enable_libpted" = xyes],
        [AC_MSG_ERROR([--enable-libpted: $CC makes no shared library with these flags])])
    AS_IF([test $pted_shared = no], [enable_libpted=no])
])
