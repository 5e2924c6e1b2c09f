package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/doctor"
)

// TestThePageOfMetricsIsTrue: docs/operations.md lists every series of the
// appliance, with its labels, and none besides.
func TestThePageOfMetricsIsTrue(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	_, text := h.Request("GET", "/metrics", "", "X-Admin-Token", h.Secret("admin-token"))
	served := map[string]string{} // labels by name
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (perch_\w+)`).FindAllStringSubmatch(text, -1) {
		served[m[1]] = ""
	}
	for _, m := range regexp.MustCompile(`(?m)^(perch_\w+?)(?:_bucket|_sum|_count)?\{(.*)\} `).FindAllStringSubmatch(text, -1) {
		var names []string
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				names = append(names, l[1])
			}
		}
		if _, is := served[m[1]]; is {
			served[m[1]] = strings.Join(names, ", ")
		}
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(perch_\\w+)(?:\\{(.*)\\})?` \\|").FindAllStringSubmatch(string(page), -1) {
		labels, is := served[m[1]]
		if !is || labels != m[2] {
			t.Errorf("the page tells of %s{%s}; served is %v with {%s}", m[1], m[2], is, labels)
		}
		told = append(told, m[1])
	}
	for name, labels := range served {
		if !slices.Contains(told, name) {
			t.Errorf("the page does not tell of %s{%s}", name, labels)
		}
	}
	if len(served) < 20 {
		t.Errorf("only %d series are served", len(served))
	}
}

// TestALockedDoorSaysWhereItsKeyIs, and no more: neither the key nor where on this
// machine the data directory is.
func TestALockedDoorSaysWhereItsKeyIs(t *testing.T) {
	t.Chdir(t.TempDir())
	h := open(t, appliancetest.Config(), "data") // as where it is started without the package
	for _, path := range []string{"/admin/devices", "/xiaozhi/admin/devices", "/api/v1/status", "/metrics"} {
		status, text := h.Request("GET", path, "")
		if status != 401 || !strings.Contains(text, "the file admin-token in the data directory") || strings.Contains(text, h.Data+"/") ||
			strings.Contains(text, h.Secret("admin-token")) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestThePageOfPartsIsTrue: every part of /ready is on the page, and every line
// of the doctor's.
func TestThePageOfPartsIsTrue(t *testing.T) {
	c := appliancetest.Config()
	c.Wyoming.Listen = "127.0.0.1:0"
	h := open(t, c, t.TempDir())
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	d := doctor.New(doctor.Options{Config: &c, Data: h.Data, Version: "dev", Built: appliance.BuiltAt(""), Connect: h.Connect})
	defer d.Close()
	d.Configuration()
	d.Secrets()
	d.Appliance(t.Context())
	d.Disk()
	d.Clock()
	d.Ports()
	for _, f := range d.Findings {
		first, _, _ := strings.Cut(f.Part, " ")
		if !regexp.MustCompile("(?m)^\\| .*`" + first + "[` ]").Match(page) {
			t.Errorf("the page does not tell of %q", f.Part)
		}
	}
	for _, part := range h.Parts() {
		first, _, _ := strings.Cut(part.Name, " ")
		if !strings.Contains(string(page), "`"+first+"`") && !strings.Contains(string(page), "`"+first+" KIND`") {
			t.Errorf("the page does not tell of the part %q", part.Name)
		}
	}
}
