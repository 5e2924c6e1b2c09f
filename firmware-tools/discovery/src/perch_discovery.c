// The choice of an appliance: the configured one while it answers, else the one
// found on the local link. This file does not depend on the chip.
#include "perch_discovery.h"

#include <stdio.h>
#include <string.h>

static const char default_path[] = "/xiaozhi/ota/";

// shortest is the shortest URL that the firmware accepts, in characters.
static const size_t shortest = 10;

// is_host reports whether an address is that of a single other machine.
static bool is_host(const uint8_t a[4])
{
    return a[0] != 0 && a[0] != 127 && a[0] < 224;
}

// is_path accepts only paths that every parser of URLs reads alike. Any machine on
// the link may answer, so the text is not trusted. The firmware's WebSocket would
// take a colon for a port, and its activation would use a wrong address after a
// query.
static bool is_path(const char *path, size_t room)
{
    if (path[0] != '/' || memchr(path, 0, room) == NULL) {
        return false;
    }
    for (const char *c = path; *c != 0; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("/._-~", *c) != NULL;
        if (!plain) {
            return false;
        }
    }
    return true;
}

bool perch_discovery_url(const perch_found_t *found, char *url, size_t size)
{
    if (size == 0) {
        return false;
    }
    url[0] = 0;
    if (found->port == 0 || !is_host(found->address)) {
        return false;
    }
    const char *path = is_path(found->path, sizeof found->path) ? found->path : default_path;
    // The address, not the name: it is valid for this boot, and needs no further
    // question on the link.
    int n = snprintf(url, size, "http://%u.%u.%u.%u:%u%s", (unsigned)found->address[0], (unsigned)found->address[1],
                     (unsigned)found->address[2], (unsigned)found->address[3], (unsigned)found->port, path);
    if (n < 0 || (size_t)n >= size) {
        url[0] = 0;
        return false;
    }
    return true;
}

// before orders answers, so that a robot chooses the same of two appliances at
// every boot, in any order of answers.
static bool before(const perch_found_t *a, const perch_found_t *b)
{
    int order = strncmp(a->instance, b->instance, sizeof a->instance);
    return order != 0 ? order < 0 : memcmp(a->address, b->address, sizeof a->address) < 0;
}

perch_choice_t perch_discovery_choose(const char *configured, const perch_link_t *link, char *url, size_t size)
{
    if (size > 0) {
        url[0] = 0;
    }
    bool has_url = configured != NULL && strlen(configured) >= shortest;
    // A server that answers is used, and the link is not searched: other machines
    // cannot redirect such a robot.
    if (has_url && link->answers(link->self, configured)) {
        return PERCH_CHOICE_CONFIGURED;
    }
    perch_found_t found[PERCH_DISCOVERY_MOST];
    memset(found, 0, sizeof found);
    size_t n = link->browse(link->self, PERCH_DISCOVERY_MS, found, PERCH_DISCOVERY_MOST);
    if (n > PERCH_DISCOVERY_MOST) {
        n = PERCH_DISCOVERY_MOST;
    }
    const perch_found_t *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if ((best == NULL || before(&found[i], best)) && perch_discovery_url(&found[i], url, size)) {
            best = &found[i];
        }
    }
    // A refused answer left the URL empty.
    if (best != NULL && perch_discovery_url(best, url, size)) {
        return PERCH_CHOICE_FOUND;
    }
    if (size > 0) {
        url[0] = 0;
    }
    return has_url ? PERCH_CHOICE_CONFIGURED : PERCH_CHOICE_NONE;
}
