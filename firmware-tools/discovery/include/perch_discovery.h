// Where a robot finds its appliance, when it was told of none or the one it
// was told of does not answer.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// PERCH_DISCOVERY_URL_SIZE is room for every URL that is made here, the NUL
// included.
#define PERCH_DISCOVERY_URL_SIZE 128

// PERCH_DISCOVERY_MS is how long the link is searched, in milliseconds. An
// appliance that is there answers within one second.
#define PERCH_DISCOVERY_MS 3000

// PERCH_DISCOVERY_MOST is how many appliances are looked at.
#define PERCH_DISCOVERY_MOST 8

// perch_choice_t says which address is to be used.
typedef enum {
    PERCH_CHOICE_CONFIGURED, // what was configured; url holds nothing
    PERCH_CHOICE_FOUND,      // what was found; url holds it
    PERCH_CHOICE_NONE,       // none is configured and none was found
} perch_choice_t;

// perch_discovery looks for the appliance of this link. It blocks: for the
// three seconds of the search at most where nothing is configured, and for
// three more where a configured server has to be asked first. Call it when
// Wi-Fi is up, before the OTA check, and keep the answer for this boot only:
// what was found is never written to the flash.
//
// configured is the OTA URL that the robot was told, NULL or "" where it was
// told none. url has room for PERCH_DISCOVERY_URL_SIZE bytes.
perch_choice_t perch_discovery(const char *configured, char url[PERCH_DISCOVERY_URL_SIZE]);

// What follows is the logic without the chip, so that it can be tested on any
// machine.

// perch_found_t is one answer to the search.
typedef struct {
    char instance[64];  // "perch-c0ffee"; it decides which of two is taken
    uint8_t address[4]; // IPv4, the first byte first
    uint16_t port;      // TCP
    char path[64];      // the TXT item "ota"; "" where there is none
} perch_found_t;

// perch_link_t is what the logic asks of the world.
typedef struct {
    void *self;
    // answers reports whether a server answers HTTP at a URL.
    bool (*answers)(void *self, const char *url);
    // browse searches the link, and returns how many it wrote to found.
    size_t (*browse)(void *self, uint32_t within_ms, perch_found_t *found, size_t room);
} perch_link_t;

// perch_discovery_choose is perch_discovery over any link.
perch_choice_t perch_discovery_choose(const char *configured, const perch_link_t *link, char *url, size_t size);

// perch_discovery_url writes where an appliance answers robots. It reports
// false, and writes "", for an answer that no robot should follow.
bool perch_discovery_url(const perch_found_t *found, char *url, size_t size);

#ifdef __cplusplus
}
#endif
