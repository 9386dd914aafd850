/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/exit_status.h"

#include <sysexits.h>

int exit_status_of(enum status status)
{
    switch (status) {
    case ST_OK:
        return EX_OK;
    case ST_INVALID:
        return EX_USAGE;
    case ST_CORRUPT:
    case ST_TOO_LARGE:
        return EX_DATAERR;
    case ST_NOT_FOUND:
        return EX_NOINPUT;
    case ST_UNSUPPORTED:
        return EX_UNAVAILABLE;
    case ST_UNAVAILABLE:
        return EX_NOPERM;
    case ST_TIMEOUT:
        return EX_TEMPFAIL;
    case ST_EXHAUSTED:
    case ST_SYSTEM:
        return EX_OSERR;
    case ST_UNWRITTEN:
        return EX_IOERR;
    default:
        return EX_SOFTWARE;
    }
}
