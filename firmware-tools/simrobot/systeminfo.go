package simrobot

import (
	"cmp"
	"fmt"
	"strings"

	"perch/device"
)

// language is the firmware's language, sent as Accept-Language.
const language = "en-US"

// The Wi-Fi network and the IP address that the simulated robot reports.
const (
	ssid    = "simulated"
	address = "192.0.2.1" // reserved for documentation (RFC 5737)
)

// systemInfo returns the body of a check-in, with keys in the order of the firmware's
// Board::GetSystemInfoJson. As in the firmware, the heap size is a string.
func systemInfo(id device.ID, client string, f firmware) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"version":2,"language":"%s","flash_size":16777216,"minimum_free_heap_size":"7632100",`, language)
	fmt.Fprintf(&b, `"mac_address":"%s","uuid":"%s","chip_model_name":"esp32s3",`, id.MAC(), client)
	b.WriteString(`"chip_info":{"model":9,"cores":2,"revision":2,"features":18},`)
	fmt.Fprintf(&b, `"application":{"name":"%s","version":"%s","compile_time":"Apr 29 2026T10:12:14Z","idf_version":"v5.5.4","elf_sha256":"%s"},`,
		f.project, f.version, cmp.Or(f.elf, strings.Repeat("0123456789abcdef", 4)))
	b.WriteString(`"partition_table":[` +
		`{"label":"nvs","type":1,"subtype":2,"address":36864,"size":16384},` +
		`{"label":"otadata","type":1,"subtype":0,"address":53248,"size":8192},` +
		`{"label":"phy_init","type":1,"subtype":1,"address":61440,"size":4096},` +
		fmt.Sprintf(`{"label":"ota_0","type":0,"subtype":16,"address":131072,"size":%d},`, slotSize) +
		fmt.Sprintf(`{"label":"ota_1","type":0,"subtype":17,"address":5308416,"size":%d},`, slotSize) +
		`{"label":"assets","type":1,"subtype":130,"address":10485760,"size":4194304}],` +
		`"ota":{"label":"ota_0"},"display":{"monochrome":false,"width":320,"height":240},`)
	manufacturer := ""
	if f.glyphs { // only the firmware versions with glyphs report a manufacturer
		manufacturer = `"manufacturer":"m5stack",`
	}
	fmt.Fprintf(&b, `"board":{"type":"%s","name":"%s",%s"ssid":"%s","rssi":-48,"channel":6,"ip":"%s","mac":"%s"}}`,
		f.board, f.board, manufacturer, ssid, address, id.MAC())
	return b.String()
}
