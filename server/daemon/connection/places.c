/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/places.h"

#include "base/check.h"
#include "base/resource.h"
#include "server/daemon/connection/session.h"

/* Clients that are turned away and may read why; the descriptors are those that are reserved. */
#define AWAY_MAX 16
/* Connections that one search looks at. A client without a quiet one among the oldest is busy. */
#define SEARCH_MAX 1024
#define UNNAMED_MIN 64
#define KEPT_MIN 4

static const enum resource resources[LISTENER_ROLE_COUNT] = {
    [LISTENER_PUBLIC] = RESOURCE_CONNECTIONS,
    [LISTENER_ADMIN] = RESOURCE_CONNECTIONS_ADMIN,
    [LISTENER_HEALTH] = RESOURCE_CONNECTIONS_HEALTH,
};

/* ---- how many -------------------------------------------------------------------------------- */

/* Of a few places most are for everybody. */
static uint32_t kept_for(const struct places *places, enum listener_role role)
{
    uint32_t size = places->size, least = size / 4 < KEPT_MIN ? size / 4 : KEPT_MIN;
    uint32_t part = role == LISTENER_PUBLIC ? size / 2 : size / 16;
    return !places->has_role[role] ? 0 : part > least ? part : least;
}

void places_resize(struct places *places, uint32_t size)
{
    uint32_t sum = 0;
    places->size = size;
    for (int role = 0; role < LISTENER_ROLE_COUNT; role++) {
        places->kept[role] = kept_for(places, (enum listener_role)role);
        sum += places->kept[role];
    }
    must(sum <= size); /* a role always finds those that are kept for it */
    for (int role = 0; role < LISTENER_ROLE_COUNT; role++) {
        uint64_t most = size - (sum - places->kept[role]);
        share_resize(&places->shares[role], most, resource_kept(resources[role], most));
    }
}

void places_init(struct places *places, uint32_t size)
{
    *places = (struct places){.has_role[LISTENER_PUBLIC] = true};
    for (int role = 0; role < LISTENER_ROLE_COUNT; role++) {
        share_init(&places->shares[role], 0, 0);
        list_init(&places->quiet[role]);
    }
    list_init(&places->away);
    list_init(&places->unnamed);
    places_resize(places, size);
}

void places_fini(struct places *places)
{
    must(places->used == 0);
    for (int role = 0; role < LISTENER_ROLE_COUNT; role++) {
        share_fini(&places->shares[role]);
    }
}

void places_add_role(struct places *places, enum listener_role role)
{
    must(role < LISTENER_ROLE_COUNT);
    places->has_role[role] = true;
    places_resize(places, places->size);
}

/* Is a place free that no other role keeps for its clients? */
static bool has_room(struct places *places, enum listener_role role)
{
    uint64_t taken = places->used;
    for (int other = 0; other < LISTENER_ROLE_COUNT; other++) {
        uint64_t used = share_used(&places->shares[other]);
        bool keeps = other != (int)role && used < places->kept[other];
        taken += keeps ? places->kept[other] - used : 0;
    }
    return taken < places->size;
}

/* ---- who gives a place up -------------------------------------------------------------------- */

/* May |client|, which has |held| places, have the place of |session|? Only a client that has more
 * loses one to another client. */
static bool may_displace(struct places *places, const struct session *session, uint64_t client,
                         uint64_t held)
{
    return session->place_client == client ||
           share_held(&places->shares[session->role], session->place_client) > held;
}

/* The connection that has been quiet for the longest time, of those whose place |client| may have;
 * NULL: there is none. */
static struct session *find_quiet(struct places *places, enum listener_role role, uint64_t client)
{
    const struct list *quiet = &places->quiet[role];
    uint64_t held = share_held(&places->shares[role], client);
    uint32_t seen = 0;
    for (struct list *node = quiet->next; node != quiet && seen < SEARCH_MAX; node = node->next) {
        struct session *session = LIST_ENTRY(node, struct session, quiet_link);
        if (may_displace(places, session, client, held) && session->ops->is_quiet(session)) {
            return session;
        }
        seen++;
    }
    return NULL;
}

static bool displace(struct places *places, struct session *session)
{
    enum listener_role role = session->role;
    uint64_t client = session->place_client;
    struct session *quiet = find_quiet(places, role, client);
    if (!quiet || !share_move(&places->shares[role], quiet->place_client, client, 1)) {
        return false;
    }
    must(quiet != session && quiet->has_place && !session->has_place);
    session->has_place = true;
    list_remove(&quiet->quiet_link);
    quiet->has_place = false;
    counter_add(&places->displaced, 1);
    session_displace(quiet);
    return true;
}

static void abort_first(struct list *sessions)
{
    struct session *first = LIST_ENTRY(sessions->next, struct session, quiet_link);
    first->ops->abort(first);
}

static void forget_unnamed(struct places *places, struct session *session)
{
    must(!session->is_unnamed || places->unnamed_count > 0);
    list_remove(&session->quiet_link);
    places->unnamed_count -= session->is_unnamed;
    session->is_unnamed = false;
}

uint32_t places_unnamed_max(uint32_t size)
{
    return size / 4 > UNNAMED_MIN ? size / 4 : UNNAMED_MIN;
}

void places_await_name(struct places *places, struct session *session)
{
    uint32_t max = places_unnamed_max(places->size);
    must(!session->is_unnamed && !session->has_place);
    session->is_unnamed = true;
    list_push_back(&places->unnamed, &session->quiet_link);
    if (++places->unnamed_count > max) {
        counter_add(&places->displaced, 1);
        abort_first(&places->unnamed);
    }
}

enum share_taken places_take(struct places *places, struct session *session)
{
    must(!session->has_place);
    forget_unnamed(places, session);
    enum listener_role role = session->role;
    uint64_t client = session->place_client;
    enum share_taken taken =
        has_room(places, role) ? share_take(&places->shares[role], client, 1) : SHARE_ALL_IN_USE;
    if (taken == SHARE_TAKEN) {
        places->used++;
        session->has_place = true;
    } else if (displace(places, session)) {
        taken = SHARE_TAKEN;
    }
    return taken;
}

static void give_back(struct places *places, struct session *session)
{
    if (session->has_place) {
        must(places->used > 0);
        share_give(&places->shares[session->role], session->place_client, 1);
        places->used--;
        session->has_place = false;
    }
}

void places_hand_over(struct places *places, struct session *from, struct session *to)
{
    (void)places;
    must(from->place_client == to->place_client && from->role == to->role && !to->has_place);
    must(from->state == SESSION_QUIET && !from->is_unnamed);
    list_remove(&from->quiet_link);
    to->has_place = from->has_place;
    from->has_place = false;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void linger_without_place(struct places *places, struct session *session)
{
    list_push_back(&places->away, &session->quiet_link);
    if (++places->away_count > AWAY_MAX) {
        abort_first(&places->away);
    }
}

void places_note_state(struct places *places, struct session *session)
{
    if (session->is_unnamed && session->state == SESSION_QUIET) {
        return;
    }
    if (session->is_unnamed) {
        forget_unnamed(places, session);
    }
    bool is_quiet = session->state == SESSION_QUIET || session->state == SESSION_LINGER,
         was_away = !session->has_place && !list_is_empty(&session->quiet_link);
    list_remove(&session->quiet_link);
    must(!was_away || places->away_count > 0);
    places->away_count -= was_away;
    if (session->state == SESSION_CLOSING) {
        give_back(places, session);
    } else if (session->has_place && is_quiet) {
        list_push_back(&places->quiet[session->role], &session->quiet_link);
    } else if (session->state == SESSION_LINGER) {
        linger_without_place(places, session);
    }
}

enum status places_refuse(const struct places *places, const struct session *session,
                          enum share_taken why, struct error *err)
{
    must(why != SHARE_TAKEN && session->role < LISTENER_ROLE_COUNT);
    enum listener_role role = session->role;
    return resource_refuse(resources[role], &places->shares[role], why, session->place_client, err);
}
