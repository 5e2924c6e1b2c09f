// Tests of the component on a host, over stubs of mdns and esp_http_client.
// Each prints a line; the program ends with the first failure.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_crt_bundle.h"
#include "esp_http_client.h"
#include "esp_log.h"
#include "mdns.h"
#include "perch_discovery.h"

#define CHECK(what)                                                                                                      \
    do {                                                                                                                 \
        if (!(what)) {                                                                                                   \
            fprintf(stderr, "%s:%d: %s does not hold; the URL is \"%s\"\n", __FILE__, __LINE__, #what, url);              \
            exit(1);                                                                                                     \
        }                                                                                                                \
    } while (0)

static char url[PERCH_DISCOVERY_URL_SIZE];

// The state of the stubs.
static struct {
    int status;                 // of the configured server; 0: it does not answer
    esp_err_t starts, searches; // of mdns
    mdns_result_t *results;
    int probes, browses, clients, lists; // clients and lists are those still open
} world;

void stub_log(const char *tag, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args); // every argument is read
    va_end(args);
    (void)tag;
}

esp_err_t esp_crt_bundle_attach(void *conf) { return conf == NULL ? ESP_FAIL : ESP_OK; }

struct esp_http_client { int opened; };

esp_http_client_handle_t esp_http_client_init(const esp_http_client_config_t *config)
{
    world.probes++;
    if (strncmp(config->url, "http", 4) != 0) {
        return NULL; // as ESP-IDF does for an invalid URL
    }
    CHECK(config->timeout_ms == 3000 && config->method == HTTP_METHOD_GET && config->disable_auto_redirect);
    world.clients++;
    return calloc(1, sizeof(struct esp_http_client));
}

esp_err_t esp_http_client_open(esp_http_client_handle_t client, int write_len)
{
    client->opened = 1;
    return world.status == 0 || write_len != 0 ? ESP_FAIL : ESP_OK;
}

int64_t esp_http_client_fetch_headers(esp_http_client_handle_t client) { return client->opened ? 0 : -1; }
int esp_http_client_get_status_code(esp_http_client_handle_t client) { return client->opened ? world.status : 0; }
esp_err_t esp_http_client_close(esp_http_client_handle_t client) { return client == NULL ? ESP_FAIL : ESP_OK; }

esp_err_t esp_http_client_cleanup(esp_http_client_handle_t client)
{
    world.clients--;
    free(client);
    return ESP_OK;
}

esp_err_t mdns_init(void) { return world.starts; }

esp_err_t mdns_query_ptr(const char *service_type, const char *proto, uint32_t timeout, size_t max_results, mdns_result_t **results)
{
    world.browses++;
    CHECK(strcmp(service_type, "_xiaozhi") == 0 && strcmp(proto, "_tcp") == 0);
    CHECK(timeout == 3000 && max_results == PERCH_DISCOVERY_MOST);
    if (world.searches == ESP_OK) {
        *results = world.results;
        world.lists++;
        world.results = NULL;
    }
    return world.searches;
}

// Each part of an answer is an allocation of the exact size, so that the sanitizer
// finds overruns and leaks.
void mdns_query_results_free(mdns_result_t *results)
{
    world.lists--;
    while (results != NULL) {
        mdns_result_t *next = results->next;
        for (size_t i = 0; i < results->txt_count; i++) {
            free((void *)results->txt[i].key);
            free((void *)results->txt[i].value);
        }
        while (results->addr != NULL) {
            mdns_ip_addr_t *a = results->addr;
            results->addr = a->next;
            free(a);
        }
        free(results->txt);
        free(results->txt_value_len);
        free(results->instance_name);
        free(results->hostname);
        free(results);
        results = next;
    }
}

static void addresses(mdns_result_t *r, int type, const uint8_t *bytes)
{
    mdns_ip_addr_t *a = calloc(1, sizeof *a);
    a->addr.type = (uint8_t)type;
    memcpy(&a->addr.u_addr, bytes, type == ESP_IPADDR_TYPE_V4 ? 4 : 16);
    a->next = r->addr;
    r->addr = a;
}

static void txt(mdns_result_t *r, const char *key, const char *value, size_t length)
{
    r->txt = realloc(r->txt, (r->txt_count + 1) * sizeof *r->txt);
    r->txt_value_len = realloc(r->txt_value_len, r->txt_count + 1);
    char *copy = NULL;
    if (value != NULL) {
        copy = malloc(length + 1); // the component ends every value with a NUL
        memcpy(copy, value, length);
        copy[length] = 0;
    }
    r->txt[r->txt_count].key = key == NULL ? NULL : strdup(key);
    r->txt[r->txt_count].value = copy;
    r->txt_value_len[r->txt_count] = (uint8_t)length;
    r->txt_count++;
}

// answer adds an answer of the link.
static mdns_result_t *answer(const char *instance, const uint8_t address[4], uint16_t port, const char *path)
{
    mdns_result_t *r = calloc(1, sizeof *r);
    r->instance_name = instance == NULL ? NULL : strdup(instance);
    r->port = port;
    if (address != NULL) {
        addresses(r, ESP_IPADDR_TYPE_V4, address);
    }
    if (path != NULL) {
        txt(r, "id", "c0ffee", 6);
        txt(r, "ota", path, strlen(path));
    }
    r->next = world.results;
    world.results = r;
    return r;
}

static void begin(const char *name)
{
    CHECK(world.clients == 0 && world.lists == 0);
    mdns_query_results_free(world.results);
    memset(&world, 0, sizeof world);
    memset(url, 'x', sizeof url);
    printf("%s\n", name);
}

static const uint8_t pi[4] = {192, 0, 2, 7}, other[4] = {192, 0, 2, 9};
static const char configured[] = "http://perch.local:8003/xiaozhi/ota/";

static void configured_wins(void)
{
    static const int there[] = {200, 204, 301, 401, 404, 405};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        begin("what is configured wins while it answers");
        world.status = there[i];
        answer("evil", other, 80, "/xiaozhi/ota/");
        CHECK(perch_discovery(configured, url) == PERCH_CHOICE_CONFIGURED);
        CHECK(url[0] == 0 && world.browses == 0 && world.probes == 1);
    }
}

static void found_when_away(void)
{
    static const int away[] = {0, 500, 502, 503};
    for (size_t i = 0; i < sizeof away / sizeof away[0]; i++) {
        begin("a configured server that does not answer gives way");
        world.status = away[i];
        answer("perch-c0ffee", pi, 8003, "/xiaozhi/ota/");
        CHECK(perch_discovery(configured, url) == PERCH_CHOICE_FOUND);
        CHECK(strcmp(url, "http://192.0.2.7:8003/xiaozhi/ota/") == 0);
    }
    begin("none is configured");
    answer("perch-c0ffee", pi, 80, "/other/ota/");
    CHECK(perch_discovery(NULL, url) == PERCH_CHOICE_FOUND);
    CHECK(strcmp(url, "http://192.0.2.7:80/other/ota/") == 0 && world.probes == 0);
    begin("what is configured is no URL");
    answer("perch-c0ffee", pi, 8003, NULL);
    CHECK(perch_discovery("http://x", url) == PERCH_CHOICE_FOUND && world.probes == 0);
    begin("what is configured has no scheme");
    answer("perch-c0ffee", pi, 8003, NULL);
    CHECK(perch_discovery("perch.local:8003", url) == PERCH_CHOICE_FOUND && world.probes == 1);
}

static void none(void)
{
    begin("nobody is there, and one is configured");
    CHECK(perch_discovery(configured, url) == PERCH_CHOICE_CONFIGURED && url[0] == 0 && world.browses == 1);
    begin("nobody is there, and none is configured");
    CHECK(perch_discovery("", url) == PERCH_CHOICE_NONE && url[0] == 0);
    begin("mdns does not start");
    world.starts = ESP_ERR_INVALID_STATE;
    CHECK(perch_discovery("", url) == PERCH_CHOICE_NONE && url[0] == 0 && world.browses == 0);
    begin("the search fails");
    world.searches = ESP_FAIL;
    CHECK(perch_discovery(configured, url) == PERCH_CHOICE_CONFIGURED && url[0] == 0);
}

static void hostile(void)
{
    static const char *const paths[] = {"", "xiaozhi", "@evil.example/", "/a:1/", "/a?b", "/a#b", "/a b", "/a%00", "/\r\nX: y", "/\x80"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        begin("a path that is none");
        answer("perch-c0ffee", pi, 8003, paths[i]);
        CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND);
        CHECK(strcmp(url, "http://192.0.2.7:8003/xiaozhi/ota/") == 0);
    }
    begin("a path with a NUL in it, one that is too long, and TXT items without a value");
    mdns_result_t *r = answer("perch-c0ffee", pi, 8003, NULL);
    char lengthy[200];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[0] = '/';
    txt(r, "ota", "/a\0b", 4);
    txt(r, "ota", lengthy, sizeof lengthy);
    txt(r, "ota", lengthy, sizeof ((perch_found_t *)NULL)->path);
    txt(r, "ota", NULL, 0);
    txt(r, NULL, "/a/", 3);
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND);
    CHECK(strcmp(url, "http://192.0.2.7:8003/xiaozhi/ota/") == 0);

    begin("as many as there is room for, each with a name and a path that just do not fit");
    for (int i = 0; i < PERCH_DISCOVERY_MOST; i++) {
        char name[sizeof ((perch_found_t *)NULL)->instance + 1];
        memset(name, 'a', sizeof name);
        name[sizeof name - 1] = 0;
        txt(answer(name, pi, 8003, NULL), "ota", lengthy, sizeof ((perch_found_t *)NULL)->path);
    }
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND);

    static const uint8_t nowhere[][4] = {{0, 0, 0, 0}, {127, 0, 0, 1}, {224, 0, 0, 251}, {255, 255, 255, 255}};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        begin("an address of nobody");
        answer("a", nowhere[i], 8003, "/xiaozhi/ota/");
        CHECK(perch_discovery("", url) == PERCH_CHOICE_NONE && url[0] == 0);
    }
    begin("no port, no address, no name");
    answer("a", pi, 0, NULL);
    answer("b", NULL, 8003, NULL);
    answer(NULL, other, 8003, NULL);
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND && strstr(url, "192.0.2.9") != NULL);
    begin("a name of 63 bytes, and one that is too long");
    lengthy[63] = 0;
    answer(lengthy, pi, 8003, NULL);
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[199] = 0;
    answer(lengthy, pi, 8003, NULL);
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND);
}

static void choice(void)
{
    for (int first = 0; first < 2; first++) {
        begin("of two, the same one whichever answers first");
        answer(first ? "perch-b" : "perch-a", first ? other : pi, 8003, NULL);
        answer(first ? "perch-a" : "perch-b", first ? pi : other, 8003, NULL);
        CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND && strstr(url, "192.0.2.7") != NULL);
    }
    begin("the one that would be taken cannot be used");
    static const uint8_t local[4] = {127, 0, 0, 1};
    answer("perch-b", pi, 8003, NULL);
    answer("perch-a", local, 8003, NULL);
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND && strstr(url, "192.0.2.7") != NULL);
    begin("more than there is room for");
    for (int i = 0; i < 3 * PERCH_DISCOVERY_MOST; i++) {
        answer("perch", pi, 8003, NULL);
    }
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND);
    begin("an address of IPv6 before that of IPv4");
    mdns_result_t *r = answer("perch", pi, 8003, NULL);
    static const uint8_t six[16] = {0x20, 0x01, 0x0d, 0xb8};
    addresses(r, ESP_IPADDR_TYPE_V6, six);
    CHECK(perch_discovery("", url) == PERCH_CHOICE_FOUND && strstr(url, "192.0.2.7") != NULL);
    begin("IPv6 alone");
    addresses(answer("perch", NULL, 8003, NULL), ESP_IPADDR_TYPE_V6, six);
    CHECK(perch_discovery("", url) == PERCH_CHOICE_NONE);
}

static void room(void)
{
    perch_found_t found = {.instance = "a", .address = {255, 0, 0, 1}, .port = 65535};
    memcpy(found.address, (uint8_t[]){223, 255, 255, 255}, 4);
    memset(found.path, 'a', sizeof found.path); // without an end
    begin("the longest URL fits, and a smaller room gets none");
    CHECK(perch_discovery_url(&found, url, sizeof url) && strcmp(url, "http://223.255.255.255:65535/xiaozhi/ota/") == 0);
    found.path[0] = '/';
    perch_found_t *alone = malloc(sizeof found);
    *alone = found;
    CHECK(perch_discovery_url(alone, url, sizeof url) && strcmp(url, "http://223.255.255.255:65535/xiaozhi/ota/") == 0);
    free(alone);
    found.path[sizeof found.path - 1] = 0;
    CHECK(perch_discovery_url(&found, url, sizeof url) && strlen(url) == 28 + 63);
    for (size_t size = 0; size <= 28 + 63; size++) {
        char *small = malloc(size == 0 ? 1 : size);
        CHECK(!perch_discovery_url(&found, small, size) && (size == 0 || small[0] == 0));
        free(small);
    }
}

int main(void)
{
    configured_wins();
    found_when_away();
    none();
    hostile();
    choice();
    room();
    begin("done");
    return 0;
}
