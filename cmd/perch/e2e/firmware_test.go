package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota"
	"perch/waittest"
)

// catalogue returns the firmware images in the program's catalogue.
func (p *process) catalogue() (list []ota.Shown) {
	p.t.Helper()
	must.Succeed(p.t, p.ask(p.t.Context(), http.MethodGet, "/api/v1/firmware", nil, &list))
	return list
}

// files returns the names of the files in the folder of firmware images.
func (p *process) files() (names []string) {
	p.t.Helper()
	list := must.Value(os.ReadDir(filepath.Join(p.data, "firmware")))(p.t)
	for _, f := range list {
		if !f.IsDir() {
			names = append(names, f.Name())
		}
	}
	return names
}

// TestThePowerGoesDuringAnUpgrade: the power fails during an upload, right after a rollout was set, and during a
// download. No partial image remains, and the robot is upgraded at last.
func TestThePowerGoesDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	p := program(t, t.TempDir())
	t.Cleanup(func() { p.cut() })
	power := func() { p.cut(); p = program(t, p.data) }
	post := func(path string, body []byte) {
		t.Helper()
		must.Succeed(t, p.ask(t.Context(), http.MethodPost, path, body, nil))
	}
	flash := filepath.Join(t.TempDir(), "flash.json")
	robot := func() *simrobot.Robot {
		made := must.Value(simrobot.New(simrobot.Options{OTA: p.ota(), MAC: "A0:B1:C2:D3:E4:F5", FlashFile: flash, Upgrades: true}))(t)
		return made
	}
	boot := func() error { return robot().Boot(t.Context()) }
	must.Succeed(t, boot())
	image := simrobot.Image("9.9.9", 1<<20)
	name := fmt.Sprintf("%x.bin", sha256.Sum256(image))

	upload := must.Value(net.Dial("tcp", strings.TrimPrefix(p.url, "http://")))(t)
	defer upload.Close()
	fmt.Fprintf(upload,
		"POST /api/v1/firmware?board=m5stack-stack-chan HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n",
		p.token, len(image))
	must.Value(upload.Write(image[:len(image)/2]))(t)
	waittest.For(t, "half of it is on the disk", func() bool { return len(p.files()) == 1 })
	power()
	if list, files := p.catalogue(), p.files(); len(list) > 0 || len(files) > 0 {
		t.Fatalf("of half an upload there is %v, %v", list, files)
	}

	post("/api/v1/firmware?board=m5stack-stack-chan", image)
	power()
	post("/api/v1/firmware/"+strings.TrimSuffix(name, ".bin")+"/rollout", []byte(`{"boards":["m5stack-stack-chan"],"percent":100,"auto":true}`))
	power()
	list := p.catalogue()
	if len(list) != 1 || !list[0].Rollout.Auto || list[0].Rollout.Percent != 100 || !slices.Equal(p.files(), []string{name}) {
		t.Fatalf("of what was acknowledged there is %+v, %v", list, p.files())
	}

	must.Succeed(t, boot()) // confirms the running firmware
	broken, last := make(chan error, 1), robot()
	go func() { broken <- last.Boot(t.Context()) }() // an image of 1 MB takes two seconds
	waittest.For(t, "half of it is downloaded", func() bool {
		trial := p.catalogue()[0].Robots["a0b1c2d3e4f5"]
		return trial.Bytes > 0 && trial.Bytes < int64(len(image))
	})
	power()
	if err := <-broken; err != nil && !errors.Is(err, syscall.ECONNREFUSED) { // the robot keeps its firmware, and its next request fails
		t.Fatal(err)
	}
	if list := p.catalogue(); len(list) != 1 || !slices.Equal(p.files(), []string{name}) {
		t.Fatalf("after half a download there is %+v, %v", list, p.files())
	}
	for range 3 {
		must.Succeed(t, boot())
	}
	if list := p.catalogue(); list[0].Robots["a0b1c2d3e4f5"].Stage != ota.Installed {
		t.Errorf("the robot is %+v", list[0].Robots)
	}
}
