package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"perch/must"
)

func TestSocketOfThisMachineIsPreferred(t *testing.T) {
	t.Chdir(t.TempDir())
	if localSocket() != "" {
		t.Skip("an appliance runs on this machine")
	}
	must.Succeed(t, os.Mkdir("data", 0o700))
	l := must.Value(net.Listen("unix", "data/perch.sock"))(t)
	var asked []string
	serve := func(w http.ResponseWriter, r *http.Request) { asked = append(asked, r.Host+" "+r.URL.Path) }
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(serve)}}
	s.Start()
	defer s.Close()
	named := httptest.NewServer(http.HandlerFunc(serve))
	defer named.Close()
	for _, url := range []string{localURL, named.URL} {
		must.Succeed(t, (&apiClient{url: url}).post(t.Context(), nil, "devices", "kitchen", "reboot"))
	}
	if len(asked) != 2 || asked[0] != "perch.sock /api/v1/devices/kitchen/reboot" || asked[1] == asked[0] {
		t.Errorf("asked were %q", asked)
	}
}
