// Finds the appliance of a robot that has no configured server, or whose server
// does not answer.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// PERCH_DISCOVERY_URL_SIZE is the size of the longest URL, with its NUL.
#define PERCH_DISCOVERY_URL_SIZE 128

// PERCH_DISCOVERY_MS is how long the link is searched, in milliseconds. An
// appliance answers within one second.
#define PERCH_DISCOVERY_MS 3000

// PERCH_DISCOVERY_MOST is the highest number of appliances that are compared.
#define PERCH_DISCOVERY_MOST 8

// perch_choice_t is the address to use.
typedef enum {
    PERCH_CHOICE_CONFIGURED, // the configured one; url is empty
    PERCH_CHOICE_FOUND,      // the one found, in url
    PERCH_CHOICE_NONE,       // none is configured, and none was found
} perch_choice_t;

// perch_discovery finds the appliance of the local link. It blocks: for the search,
// three seconds at most, and for three more if a configured server is asked first.
// Call it when Wi-Fi is up, before the OTA check, and keep the result for this boot
// only: do not write it to the flash.
//
// configured is the robot's OTA URL, NULL or "" without one. url has
// PERCH_DISCOVERY_URL_SIZE bytes.
perch_choice_t perch_discovery(const char *configured, char url[PERCH_DISCOVERY_URL_SIZE]);

// The following logic does not depend on the chip, so that it can be tested on any
// machine.

// perch_found_t is one answer to the search.
typedef struct {
    char instance[64];  // "perch-c0ffee"; it decides between two appliances
    uint8_t address[4]; // IPv4, the first byte first
    uint16_t port;      // TCP
    char path[64];      // the TXT item "ota"; "" without one
} perch_found_t;

// perch_link_t is the logic's access to the network.
typedef struct {
    void *self;
    // answers reports whether a server answers HTTP at a URL.
    bool (*answers)(void *self, const char *url);
    // browse searches the link, and returns how many it wrote to found.
    size_t (*browse)(void *self, uint32_t within_ms, perch_found_t *found, size_t room);
} perch_link_t;

// perch_discovery_choose is perch_discovery on any link.
perch_choice_t perch_discovery_choose(const char *configured, const perch_link_t *link, char *url, size_t size);

// perch_discovery_url writes an appliance's bootstrap URL. For an invalid answer it
// returns false and writes "".
bool perch_discovery_url(const perch_found_t *found, char *url, size_t size);

#ifdef __cplusplus
}
#endif
