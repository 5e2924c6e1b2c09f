package device_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/device"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table stores robots as the real store does, in JSON, and counts the writes.
type table struct {
	storetest.Table[device.Robot]
	put, soon int
}

var errDiskFull = errors.New("disk full")

func newTable() *table { return &table{} }

func (b *table) Put(key string, r device.Robot) error {
	err := b.Table.Put(key, asStored(r))
	if err == nil {
		b.put++
	}
	return err
}

func (b *table) PutSoon(key string, r device.Robot) {
	b.soon++
	b.Table.PutSoon(key, asStored(r))
}

func newRegistry(adoption device.Adoption) (*table, *device.Registry) {
	kept := newTable()
	return kept, device.NewRegistry(key, adoption, kept)
}

// asStored returns a robot as decoded from its JSON.
func asStored(r device.Robot) (back device.Robot) {
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		panic(err)
	}
	return back
}

// writes returns the number of writes since its last call.
func (b *table) writes() int {
	n := b.put + b.soon
	b.put, b.soon = 0, 0
	return n
}

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// adopt adopts a robot by its ID, and ends the test if that fails.
func adopt(t testing.TB, r *device.Registry, id device.ID) {
	t.Helper()
	if _, err := r.Adopt(string(id), noon); err != nil {
		t.Fatal(err)
	}
}

// owned makes a robot check in and adopts it.
func owned(t testing.TB, r *device.Registry, id device.ID) {
	t.Helper()
	r.CheckIn(from(id, "one"), noon)
	adopt(t, r, id)
}

func from(id device.ID, client string) device.CheckIn {
	return device.CheckIn{
		ID: id, Client: device.NewClient(client), Board: "m5stack-stack-chan", Firmware: "1.2.4", Language: "en-US",
		Address: "192.168.1.40", BaseURL: "http://perch.local:8003",
	}
}
