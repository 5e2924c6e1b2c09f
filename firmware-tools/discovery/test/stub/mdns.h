// As much of the component espressif/mdns 1 as is used here.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"

#define ESP_IPADDR_TYPE_V4 0U
#define ESP_IPADDR_TYPE_V6 6U

typedef struct { uint32_t addr; } esp_ip4_addr_t; // in network byte order
typedef struct { uint32_t addr[4]; uint8_t zone; } esp_ip6_addr_t;
typedef struct {
    union { esp_ip6_addr_t ip6; esp_ip4_addr_t ip4; } u_addr;
    uint8_t type;
} esp_ip_addr_t;

typedef struct { const char *key; const char *value; } mdns_txt_item_t;
typedef struct mdns_ip_addr_s {
    esp_ip_addr_t addr;
    struct mdns_ip_addr_s *next;
} mdns_ip_addr_t;

typedef struct mdns_result_s {
    struct mdns_result_s *next;
    char *instance_name;
    char *hostname;
    uint16_t port;
    mdns_txt_item_t *txt;
    uint8_t *txt_value_len;
    size_t txt_count;
    mdns_ip_addr_t *addr;
} mdns_result_t;

esp_err_t mdns_init(void);
esp_err_t mdns_query_ptr(const char *service_type, const char *proto, uint32_t timeout, size_t max_results, mdns_result_t **results);
void mdns_query_results_free(mdns_result_t *results);
