package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"perch/firmware-tools/simrobot"
	"perch/ota"
)

// cut is an appliance that runs as a program, and loses its power again and
// again.
type cut struct {
	t    *testing.T
	data string
	cmd  *exec.Cmd
	ota  string
}

func (c *cut) start() { c.cmd, c.ota = program(c.t, c.data) }

func (c *cut) power() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = c.cmd.Wait() // it was killed
	c.start()
}

func (c *cut) url(path string) string { return strings.TrimSuffix(c.ota, "/xiaozhi/ota/") + path }

func (c *cut) token() string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, "admin-token"))
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// ask asks the owner's door.
func (c *cut) ask(method, path string, body []byte, into any) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url(path), bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token())
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cut) catalogue() (list []ota.Shown) {
	c.t.Helper()
	c.ask(http.MethodGet, "/api/v1/firmware", nil, &list)
	return list
}

// files are the images on the disk, and whatever else an upload leaves.
func (c *cut) files() (names []string) {
	c.t.Helper()
	list, err := os.ReadDir(filepath.Join(c.data, "firmware"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range list {
		if !f.IsDir() {
			names = append(names, f.Name())
		}
	}
	return names
}

// TestThePowerGoesDuringAnUpgrade: in the middle of an upload, right after a
// rollout was set, and in the middle of a download. Nothing is there by halves,
// and the robot is upgraded in the end.
func TestThePowerGoesDuringAnUpgrade(t *testing.T) {
	c := &cut{t: t, data: t.TempDir()}
	c.start()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() }) // it was killed
	flash := filepath.Join(t.TempDir(), "flash.json")
	boot := func() error {
		robot, err := simrobot.New(simrobot.Options{OTA: c.ota, MAC: "A0:B1:C2:D3:E4:F5", FlashFile: flash, Upgrades: true})
		if err != nil {
			t.Fatal(err)
		}
		return robot.Boot(t.Context())
	}
	if err := boot(); err != nil {
		t.Fatal(err)
	}
	image := simrobot.Image("9.9.9", 1<<20)
	name := fmt.Sprintf("%x.bin", sha256.Sum256(image))

	upload, err := net.Dial("tcp", strings.TrimPrefix(c.url(""), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer upload.Close()
	fmt.Fprintf(upload,
		"POST /api/v1/firmware?board=m5stack-stack-chan HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n",
		c.token(), len(image))
	if _, err := upload.Write(image[:len(image)/2]); err != nil {
		t.Fatal(err)
	}
	(&house{t: t}).eventually("half of it is on the disk", func() bool { return len(c.files()) == 1 })
	c.power()
	if list, files := c.catalogue(), c.files(); len(list) > 0 || len(files) > 0 {
		t.Fatalf("of half an upload there is %v, %v", list, files)
	}

	c.ask(http.MethodPost, "/api/v1/firmware?board=m5stack-stack-chan", image, nil)
	c.power()
	c.ask(http.MethodPost, "/api/v1/firmware/"+strings.TrimSuffix(name, ".bin")+"/rollout",
		[]byte(`{"boards":["m5stack-stack-chan"],"percent":100,"auto":true}`), nil)
	c.power()
	list := c.catalogue()
	if len(list) != 1 || !list[0].Rollout.Auto || list[0].Rollout.Percent != 100 || !slices.Equal(c.files(), []string{name}) {
		t.Fatalf("of what was acknowledged there is %+v, %v", list, c.files())
	}

	if err := boot(); err != nil { // which confirms what it runs
		t.Fatal(err)
	}
	broken := make(chan error, 1)
	go func() { broken <- boot() }() // an image of 1 MB takes two seconds
	(&house{t: t}).eventually("half of it is downloaded", func() bool {
		trial := c.catalogue()[0].Robots["a0b1c2d3e4f5"]
		return trial.Bytes > 0 && trial.Bytes < int64(len(image))
	})
	c.power()
	if err := <-broken; err != nil && !errors.Is(err, syscall.ECONNREFUSED) { // it goes on with what it has, and asks no more
		t.Fatal(err)
	}
	if list := c.catalogue(); len(list) != 1 || !slices.Equal(c.files(), []string{name}) {
		t.Fatalf("after half a download there is %+v, %v", list, c.files())
	}
	for range 3 {
		if err := boot(); err != nil {
			t.Fatal(err)
		}
	}
	if list := c.catalogue(); list[0].Robots["a0b1c2d3e4f5"].Stage != ota.Installed {
		t.Errorf("the robot is %+v", list[0].Robots)
	}
}
