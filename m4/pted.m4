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
            [AC_MSG_ERROR([llhttp not found: install libllhttp-dev, or Debian 12's node-llhttp])])
    ])
    AC_SUBST([LLHTTP_CFLAGS])
    AC_SUBST([LLHTTP_LIBS])
    AC_SUBST([LLHTTP_DIR], [$llhttp_dir])
    AM_CONDITIONAL([LLHTTP_SOURCES], [test $llhttp_sources = yes])
])
