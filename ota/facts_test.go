package ota

import "testing"

// FuzzFacts checks that the facts parsed from an arbitrary body are within sensible bounds.
func FuzzFacts(f *testing.F) {
	f.Add([]byte(
		`{"chip_model_name":"esp32s3","chip_info":{"revision":2},"application":{"elf_sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},` +
			`"partition_table":[{"type":0,"subtype":16,"size":5177344},{"type":0,"subtype":17,"size":5000000},{"type":1,"subtype":2,"size":16384}]}`))
	f.Add([]byte(`{"chip_model_name":"esp32","partition_table":[{"type":0,"subtype":0,"size":100}]}`))
	f.Add([]byte(`{"chip_model_name":"esp32","chip_info":{"revision":-7},"partition_table":[{"type":0,"subtype":16,"size":-100}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		facts, elf := parseFacts(body)
		if elf != "" && !isHash(elf) {
			t.Errorf("%s runs %q", body, elf)
		}
		if facts == nil {
			return
		}
		if facts.Slot < 0 || facts.Assets < 0 || facts.Revision < -1 || facts.Fixed && facts.Slot != 0 {
			t.Errorf("%s is %+v", body, facts)
		}
		u := Unit{Reported: true, Facts: *facts}
		_ = Image{Chip: "esp32s3", Length: 1}.checkTarget(u.target())
	})
}

// TestFacts parses the facts of a Stack-chan, and unusual ones.
func TestFacts(t *testing.T) {
	const chip = `{"chip_model_name":"esp32s3",`
	for _, c := range []struct {
		body string
		want Facts
	}{
		{chip + `"chip_info":{"revision":2},"partition_table":[{"type":0,"subtype":16,"size":500},{"type":0,"subtype":17,"size":400},{"type":1,"subtype":16,"size":3},{"label":"assets","type":1,"subtype":130,"size":8388608}]}`, Facts{9, 2, 400, false, 8 << 20}},
		{chip + `"partition_table":[{"type":0,"subtype":0,"size":500}]}`, Facts{9, -1, 0, true, 0}},
		{chip + `"partition_table":[{"type":0,"subtype":32,"size":500}]}`, Facts{9, -1, 0, true, 0}},
		{chip + `"partition_table":[{"label":7,"type":1,"subtype":2,"size":1},{"label":"assets","type":1,"subtype":130,"size":-5}]}`,
			Facts{9, -1, 0, true, 0}},
		{chip + `"partition_table":[]}`, Facts{9, -1, 0, false, 0}},
	} {
		if got, _ := parseFacts([]byte(c.body)); got == nil || *got != c.want {
			t.Errorf("%s: %+v", c.body, got)
		}
	}
	for _, body := range []string{"", "null", `{"chip_model_name":"esp8266"}`, `{"chip_model_name":7}`, `{}`} {
		if got, elf := parseFacts([]byte(body)); got != nil || elf != "" {
			t.Errorf("%s: %+v", body, got)
		}
	}
}
