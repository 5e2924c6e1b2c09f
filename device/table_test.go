package device_test

import (
	"encoding/json"
	"iter"
	"testing"
	"time"

	"perch/device"
)

// table keeps robots as the store does, as JSON, and counts the writes.
type table struct {
	kept      map[string][]byte
	put, soon int
	broken    error // of Put
}

func newTable() *table { return &table{kept: map[string][]byte{}} }

func (b *table) Put(key string, r device.Robot) error {
	if b.broken != nil {
		return b.broken
	}
	b.put++
	b.keep(key, r)
	return nil
}

func (b *table) PutSoon(key string, r device.Robot) {
	b.soon++
	b.keep(key, r)
}

func (b *table) Delete(key string) error {
	if b.broken != nil {
		return b.broken
	}
	delete(b.kept, key)
	return nil
}

func (b *table) DeleteSoon(key string) { delete(b.kept, key) }

func (b *table) keep(key string, r device.Robot) {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	b.kept[key] = text
}

func (b *table) All() iter.Seq2[string, device.Robot] {
	return func(yield func(string, device.Robot) bool) {
		for key, text := range b.kept {
			var r device.Robot
			if err := json.Unmarshal(text, &r); err != nil {
				panic(err)
			}
			if !yield(key, r) {
				return
			}
		}
	}
}

// writes returns how often was written since it was last asked.
func (b *table) writes() int {
	n := b.put + b.soon
	b.put, b.soon = 0, 0
	return n
}

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// visit is a check-in that must be taken.
func visit(t testing.TB, r *device.Registry, c device.CheckIn, at time.Time) (device.Robot, device.Admission) {
	t.Helper()
	return r.CheckIn(c, at)
}

func from(id device.ID, client string) device.CheckIn {
	return device.CheckIn{
		ID: id, Client: device.NewClient(client), Board: "m5stack-stack-chan", Firmware: "1.2.4", Language: "en-US",
		Address: "192.168.1.40", BaseURL: "http://perch.local:8003",
	}
}
