package store_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"perch/store"
)

// A table stores values of one type. Put returns when the value is on the disk.
// PutSoon returns at once, and later reads see the value.
func ExampleTable() {
	dir, err := os.MkdirTemp("", "perch-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(filepath.Join(dir, "perch.db"), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	type timer struct {
		Text    string `json:"text"`
		Seconds int    `json:"seconds"`
	}
	timers := store.NewTable[timer](db, "timers")
	if err := timers.Put("tea", timer{"The tea is ready.", 240}); err != nil {
		log.Fatal(err)
	}
	timers.PutSoon("bread", timer{"The bread is baked.", 2400})
	for key, t := range timers.All() {
		fmt.Println(key, t.Seconds, t.Text)
	}
	_, found, err := timers.Get("cake")
	fmt.Println("cake:", found, err)
	// Output:
	// bread 2400 The bread is baked.
	// tea 240 The tea is ready.
	// cake: false <nil>
}
