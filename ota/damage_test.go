package ota_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/ota"
)

// damage changes one byte in the middle of a file. The size does not change.
func damage(t *testing.T, file string) {
	t.Helper()
	text := must.Value(os.ReadFile(file))(t)
	text[len(text)/2] ^= 1
	must.Succeed(t, os.WriteFile(file, text, 0o640))
}

// TestADamagedImageIsNotOffered checks that an image whose file has another hash is not offered, sent or
// installed, and that the damage is logged once and listed. An older, undamaged image is offered instead, and
// after it was published again, the image itself.
func TestADamagedImageIsNotOffered(t *testing.T) {
	var log bytes.Buffer
	l := newAppliance(t, func(o *ota.FirmwareOptions) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	l.rollOut(t, simrobot.Image("1.3.0", 0))
	newest := simrobot.Image("1.4.0", 0)
	sha := l.rollOut(t, newest).SHA256
	l.runs(t, mac, "1.2.4")
	before := l.runs(t, mac, "1.2.4")
	if before.Version != "1.4.0" {
		t.Fatalf("offered is %+v", before)
	}
	damage(t, l.dir+"/"+sha+".bin")
	for range 2 {
		if o := l.runs(t, mac, "1.2.4"); o.Version != "1.3.0" {
			t.Fatalf("offered is %+v", o)
		}
	}
	if w := l.fetch(before); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "damaged_image") {
		t.Errorf("it is sent all the same: %d %.200s", w.Code, w.Body)
	}
	_, err := l.Install("a0b1c2d3e4f5", sha, time.Now())
	if statusOf(err) != "409 damaged_image" || !strings.Contains(err.Error(), "publish it again") {
		t.Errorf("installed by hand: %v", err)
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Latest != "1.3.0" {
		t.Errorf("the latest is %+v", u)
	}
	listed := l.List()
	if !strings.Contains(listed[0].Damaged, "publish it again") || listed[1].Damaged != "" {
		t.Errorf("listed are %+v", listed)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), sha) {
		t.Errorf("%d errors are logged: %s", n, &log)
	}
	l.add(t, newest, board)
	if listed := l.List(); listed[0].Damaged != "" {
		t.Errorf("published again it is %+v", listed[0])
	}
	o := l.runs(t, mac, "1.2.4")
	if w := l.fetch(o); o.Version != "1.4.0" || w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), newest) {
		t.Errorf("published again: offered is %+v, sent %d", o, w.Code)
	}
}

func TestImageWithoutFileIsNotOffered(t *testing.T) {
	l := newAppliance(t)
	sha := l.rollOut(t, simrobot.Image("1.4.0", 0)).SHA256
	l.runs(t, mac, "1.2.4")
	must.Succeed(t, os.Remove(l.dir+"/"+sha+".bin"))
	o, why := l.runs(t, mac, "1.2.4"), l.List()[0].Damaged
	if o.URL != "" || !strings.Contains(why, "no such file") || strings.Contains(why, l.dir) {
		t.Errorf("offered is %+v, listed as damaged: %q", o, why)
	}
}

// TestUnnoticedDamageIsFoundWhileSending damages a file without changing its metadata, so that a check-in does
// not read the file again. The end of the file must not be sent, and the image must not be offered again.
func TestUnnoticedDamageIsFoundWhileSending(t *testing.T) {
	l := newAppliance(t)
	image := simrobot.Image("1.4.0", 200_000)
	file := l.dir + "/" + l.rollOut(t, image).SHA256 + ".bin"
	l.runs(t, mac, "1.2.4")
	if o := l.runs(t, mac, "1.2.4"); o.Version != "1.4.0" {
		t.Fatalf("offered is %+v", o)
	}
	about := must.Value(os.Stat(file))(t)
	damage(t, file)
	must.Succeed(t, os.Chtimes(file, about.ModTime(), about.ModTime()))
	o := l.runs(t, mac, "1.2.4")
	if o.Version != "1.4.0" {
		t.Fatalf("it was read again: offered is %+v", o)
	}
	if w := l.fetch(o); w.Body.Len() >= len(image) {
		t.Errorf("%d of %d bytes are sent", w.Body.Len(), len(image))
	}
	if o := l.runs(t, mac, "1.2.4"); o.URL != "" || l.List()[0].Damaged == "" {
		t.Errorf("offered is %+v, listed %+v", o, l.List()[0])
	}
}
