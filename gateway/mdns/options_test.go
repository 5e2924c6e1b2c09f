package mdns

import (
	"slices"
	"strings"
	"testing"
)

func TestHostName(t *testing.T) {
	for n, want := range map[int]string{1: "perch.local", 2: "perch-2.local", 15: "perch-15.local"} {
		if got := hostName("Perch", n); got != want {
			t.Errorf("choice %d: %s, want %s", n, got, want)
		}
	}
}

func TestNewChecksOptions(t *testing.T) {
	good := Options{Name: "perch", ID: "c0ffee", Version: "1.0", Port: 8003}
	tests := map[string]struct {
		change func(*Options)
		fault  string // part of the error, or empty
	}{
		"good":             {func(*Options) {}, ""},
		"long name":        {func(o *Options) { o.Name = strings.Repeat("a", 53) }, ""},
		"no name":          {func(o *Options) { o.Name = "" }, "mdns name"},
		"name with dot":    {func(o *Options) { o.Name = "perch.local" }, "mdns name"},
		"name with space":  {func(o *Options) { o.Name = "my perch" }, "mdns name"},
		"hyphen first":     {func(o *Options) { o.Name = "-perch" }, "mdns name"},
		"no room for -15":  {func(o *Options) { o.Name = strings.Repeat("a", 61) }, "mdns name"},
		"no id":            {func(o *Options) { o.ID = "" }, "mdns id"},
		"long instance":    {func(o *Options) { o.Name, o.ID = strings.Repeat("a", 40), strings.Repeat("b", 23) }, "mdns id"},
		"no port":          {func(o *Options) { o.Port = 0 }, "mdns port"},
		"high port":        {func(o *Options) { o.Port = 65536 }, "mdns port"},
		"version unescape": {func(o *Options) { o.Version = `1\0` }, "mdns version"},
		"version newline":  {func(o *Options) { o.Version = "1\n" }, "mdns version"},
		"long version":     {func(o *Options) { o.Version = strings.Repeat("1", 201) }, "mdns version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := good
			tt.change(&o)
			_, err := New(o)
			if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("error %v, want one about %q", err, tt.fault)
			}
		})
	}
}

func TestStatusAtRest(t *testing.T) {
	a, err := New(Options{Name: "perch", ID: "c0ffee", Version: "1.0", Port: 8003})
	if err != nil {
		t.Fatal(err)
	}
	got := a.Status()
	if got.Host != "perch.local" || got.Instance != "perch-c0ffee" || got.By != ByNobody || got.Reason == nil || got.Reason.Error() != "not started" {
		t.Errorf("status %+v", got)
	}
	want := []string{"ota=/xiaozhi/ota/", "ws=/xiaozhi/v1/", "version=1.0", "id=c0ffee"}
	if txt := a.opts.offers()[0].txt(); !slices.Equal(txt, want) {
		t.Errorf("TXT %q, want %q", txt, want)
	}
}

func TestStatusIsACopy(t *testing.T) {
	a := &Announcer{opts: Options{Name: "perch", ID: "x", Also: []Offer{{Type: Wyoming, Port: 2}}}}
	if got := a.Status().Services; got != nil {
		t.Errorf("at rest: %v", got)
	}
	a.set(a.announced("perch.local", ByPerch, []link{newTestLink("eth0", "192.168.1.2")}))
	a.Status().Addresses[0], a.Status().Services[0] = addrs("8.8.8.8")[0], "changed"
	if got := a.Status(); !slices.Equal(got.Addresses, addrs("192.168.1.2")) || !slices.Equal(got.Interfaces, []string{"eth0"}) ||
		!slices.Equal(got.Services, []string{Service, Wyoming}) {
		t.Errorf("status %+v", got)
	}
}
