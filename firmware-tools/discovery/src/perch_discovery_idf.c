// The link by ESP-IDF: the mdns component searches, esp_http_client checks that a
// server answers.
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

// probe_ms is the time limit for a configured server.
static const int probe_ms = 3000;

// answers sends a GET, which changes nothing on a server. Any status counts, also
// that of a server that knows only POST; except those of a broken server, or of a
// proxy without a server.
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

// copy copies a text that fits; a longer one is left out.
static void copy(char *to, size_t room, const char *from, size_t length)
{
    if (length < room && memchr(from, 0, length) == NULL) {
        memcpy(to, from, length);
        to[length] = 0;
    }
}

// read_answer copies one instance. It returns false without an IPv4 address.
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
    memcpy(found->address, &a->addr.u_addr.ip4.addr, sizeof found->address); // in network byte order
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
    // A second call returns ESP_OK and changes nothing: the firmware may use mdns
    // itself.
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
