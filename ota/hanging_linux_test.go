package ota_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
	"perch/must"
)

// soon returns the result of f, and fails the test if f takes longer than 15 s.
func soon[T any](t *testing.T, what string, f func() T) (v T) {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	select {
	case v = <-result:
	case <-time.After(15 * time.Second):
		t.Fatalf("%s waits for the card", what)
	}
	return v
}

// TestACardThatHangsHoldsUpNobody checks that while the file of an image cannot be read, check-ins receive a
// reply without an offer, the catalogue can be listed, and only downloads of the image wait. Afterwards the
// image is offered.
func TestACardThatHangsHoldsUpNobody(t *testing.T) {
	l := newAppliance(t)
	image := simrobot.Image("1.4.0", 0)
	file := filepath.Join(l.dir, l.rollOut(t, image).SHA256+".bin")
	l.runs(t, mac, "1.2.4")
	before := l.runs(t, mac, "1.2.4")
	if before.Version != "1.4.0" {
		t.Fatalf("offered is %+v", before)
	}
	pipe := filepath.Join(t.TempDir(), "pipe") // reading the pipe blocks until something is written
	must.Succeed(t, syscall.Mkfifo(pipe, 0o600))
	must.Succeed(t, os.Remove(file))
	must.Succeed(t, os.Link(pipe, file))
	card := must.Value(os.OpenFile(pipe, os.O_RDWR, 0))(t)
	goesOn := func() { // restores the file and lets the reader continue
		must.Succeed(t, os.WriteFile(file+".new", image, 0o640))
		must.Succeed(t, os.Rename(file+".new", file))
		must.Value(card.Write(image))(t)
		must.Succeed(t, card.Close())
	}
	t.Cleanup(func() { _ = card.Close() })

	for range 2 {
		if o := soon(t, "a check-in", func() offer { return l.runs(t, mac, "1.2.4") }); o.URL != "" {
			t.Errorf("offered is %+v", o)
		}
	}
	if listed := soon(t, "the list", l.List); listed[0].Damaged != "" {
		t.Errorf("what was not read is called damaged: %+v", listed[0])
	}
	downloaded := make(chan *httptest.ResponseRecorder, 1)
	go func() { downloaded <- l.fetch(before) }()
	if o := soon(t, "a check-in beside a download", func() offer { return l.runs(t, "a0:b1:c2:d3:e4:f6", "1.2.4") }); o.URL != "" {
		t.Errorf("offered is %+v", o)
	}
	goesOn()
	if w := <-downloaded; w.Code != 200 || !bytes.Equal(w.Body.Bytes(), image) {
		t.Errorf("downloaded: %d %.200s", w.Code, w.Body)
	}
	if o := l.runs(t, mac, "1.2.4"); o.Version != "1.4.0" {
		t.Errorf("then offered is %+v", o)
	}
}
