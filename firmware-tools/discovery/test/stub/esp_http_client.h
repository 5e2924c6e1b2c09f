// As much of esp_http_client as the component uses, in the form of ESP-IDF 5.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"

typedef struct esp_http_client *esp_http_client_handle_t;
typedef enum { HTTP_METHOD_GET, HTTP_METHOD_POST } esp_http_client_method_t;

typedef struct {
    const char *url;
    esp_http_client_method_t method;
    int timeout_ms;
    bool disable_auto_redirect;
    esp_err_t (*crt_bundle_attach)(void *conf);
} esp_http_client_config_t;

esp_http_client_handle_t esp_http_client_init(const esp_http_client_config_t *config);
esp_err_t esp_http_client_open(esp_http_client_handle_t client, int write_len);
int64_t esp_http_client_fetch_headers(esp_http_client_handle_t client);
int esp_http_client_get_status_code(esp_http_client_handle_t client);
esp_err_t esp_http_client_close(esp_http_client_handle_t client);
esp_err_t esp_http_client_cleanup(esp_http_client_handle_t client);
