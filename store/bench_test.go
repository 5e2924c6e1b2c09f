package store

import (
	"fmt"
	"testing"
)

func benchTable(b *testing.B, n int) (*DB, *Table[robot]) {
	db := open(b, dbPath(b), Options{})
	robots := NewTable[robot](db, "robots")
	for i := range n {
		robots.PutSoon(fmt.Sprintf("%06d", i), robot{Name: "Chan", Count: i, Tags: []string{"desk", "kitchen"}})
	}
	must(b, db.Flush())
	return db, robots
}

func BenchmarkGet(b *testing.B) {
	_, robots := benchTable(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := robots.Get("000500"); !found || err != nil {
			b.Fatal(found, err)
		}
	}
}

func BenchmarkPutSoon(b *testing.B) {
	_, robots := benchTable(b, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		robots.PutSoon("000500", robot{Name: "Chan", Count: i})
	}
}

func BenchmarkPut(b *testing.B) {
	_, robots := benchTable(b, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		must(b, robots.Put("000500", robot{Name: "Chan", Count: i}))
	}
}

func BenchmarkNewest20(b *testing.B) {
	_, robots := benchTable(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		for range robots.Newest(20) {
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	db, _ := benchTable(b, 10_000)
	must(b, db.Close())
	for b.Loop() {
		db, err := Open(db.Path(), Options{})
		must(b, err)
		must(b, db.Close())
	}
}

func BenchmarkFirstOpen(b *testing.B) {
	for b.Loop() {
		db, err := Open(dbPath(b), Options{})
		must(b, err)
		must(b, db.Close())
	}
}
