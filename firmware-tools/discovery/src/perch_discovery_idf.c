// The link as ESP-IDF has it: the mdns component searches, esp_http_client
// asks whether a server is there.
#include "perch_discovery.h"

#include <string.h>

#include "sdkconfig.h"

#include "esp_http_client.h"
#include "esp_log.h"
#include "mdns.h"
#if CONFIG_MBEDTLS_CERTIFICATE_BUNDLE
#include "esp_crt_bundle.h"
#endif

static const char *const tag = "perch";

// probe_ms is how long a configured server has to answer.
static const int probe_ms = 3000;

// answers asks with a GET, which changes nothing on any server. One that
// knows only POST is there as well, so that any status but one of a server
// that is broken, or of a proxy in front of none, counts.
static bool answers(void *self, const char *url)
{
    (void)self;
    esp_http_client_config_t config = {
        .url = url,
        .method = HTTP_METHOD_GET,
        .timeout_ms = probe_ms,
        .disable_auto_redirect = true,
#if CONFIG_MBEDTLS_CERTIFICATE_BUNDLE
        .crt_bundle_attach = esp_crt_bundle_attach,
#endif
    };
    esp_http_client_handle_t client = esp_http_client_init(&config);
    if (client == NULL) {
        return false;
    }
    bool there = false;
    if (esp_http_client_open(client, 0) == ESP_OK && esp_http_client_fetch_headers(client) >= 0) {
        int status = esp_http_client_get_status_code(client);
        there = status >= 200 && status < 500;
    }
    esp_http_client_close(client);
    esp_http_client_cleanup(client);
    return there;
}

// copy takes over a text that fits whole; one that does not is left out.
static void copy(char *to, size_t room, const char *from, size_t length)
{
    if (length < room && memchr(from, 0, length) == NULL) {
        memcpy(to, from, length);
        to[length] = 0;
    }
}

// read_answer takes over one instance, and reports false where it told no
// IPv4 address.
static bool read_answer(const mdns_result_t *r, perch_found_t *found)
{
    memset(found, 0, sizeof *found);
    const mdns_ip_addr_t *a = r->addr;
    while (a != NULL && a->addr.type != ESP_IPADDR_TYPE_V4) {
        a = a->next;
    }
    if (a == NULL) {
        return false;
    }
    memcpy(found->address, &a->addr.u_addr.ip4.addr, sizeof found->address); // in the order of the network
    found->port = r->port;
    if (r->instance_name != NULL) {
        copy(found->instance, sizeof found->instance, r->instance_name, strlen(r->instance_name));
    }
    for (size_t i = 0; i < r->txt_count; i++) {
        const char *value = r->txt[i].value;
        if (r->txt[i].key != NULL && value != NULL && strcmp(r->txt[i].key, "ota") == 0) {
            copy(found->path, sizeof found->path, value, r->txt_value_len[i]);
        }
    }
    return true;
}

static size_t browse(void *self, uint32_t within_ms, perch_found_t *found, size_t room)
{
    (void)self;
    // A second call is answered with ESP_OK and changes nothing, so firmware
    // that uses mdns for its own ends may have made the first.
    esp_err_t err = mdns_init();
    if (err != ESP_OK) {
        ESP_LOGW(tag, "mdns does not start: %d", (int)err);
        return 0;
    }
    mdns_result_t *results = NULL;
    err = mdns_query_ptr("_xiaozhi", "_tcp", within_ms, room, &results);
    if (err != ESP_OK) {
        ESP_LOGW(tag, "the link cannot be searched: %d", (int)err);
        return 0;
    }
    size_t n = 0;
    for (const mdns_result_t *r = results; r != NULL && n < room; r = r->next) {
        if (read_answer(r, &found[n])) {
            n++;
        }
    }
    mdns_query_results_free(results);
    return n;
}

perch_choice_t perch_discovery(const char *configured, char url[PERCH_DISCOVERY_URL_SIZE])
{
    const perch_link_t link = {.self = NULL, .answers = answers, .browse = browse};
    perch_choice_t choice = perch_discovery_choose(configured, &link, url, PERCH_DISCOVERY_URL_SIZE);
    if (choice == PERCH_CHOICE_FOUND) {
        ESP_LOGI(tag, "the appliance of this link is %s", url);
    }
    return choice;
}
