// The formats are checked by the compiler, as ESP-IDF has them checked.
#pragma once
__attribute__((format(printf, 2, 3))) void stub_log(const char *tag, const char *format, ...);
#define ESP_LOGI(tag, ...) stub_log(tag, __VA_ARGS__)
#define ESP_LOGW(tag, ...) stub_log(tag, __VA_ARGS__)
