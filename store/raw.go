package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"
)

// Raw is the database as a [Migration] sees it: tables of JSON texts. It is valid only during Apply.
type Raw struct{ tx *bbolt.Tx }

// All yields a table's records in byte order of their keys. The table may be changed during the loop: All yields the
// keys of its start, without those deleted since.
func (r *Raw) All(table string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		b := r.tx.Bucket([]byte(table))
		if b == nil {
			return
		}
		// A bolt cursor skips records if its bucket is changed, so the keys are collected first.
		var keys []string
		for key := range pairs(b.Cursor()) {
			keys = append(keys, string(key))
		}
		for _, key := range keys {
			if value := r.Get(table, key); value != nil && !yield(key, value) {
				return
			}
		}
	}
}

// Get returns a copy of a record, or nil.
func (r *Raw) Get(table, key string) []byte {
	if b := r.tx.Bucket([]byte(table)); b != nil {
		return bytes.Clone(b.Get([]byte(key)))
	}
	return nil
}

// Put stores a JSON text.
func (r *Raw) Put(table, key string, value []byte) error {
	if err := checkKey(table, key); err != nil {
		return err
	}
	if len(value) > MaxValue || !json.Valid(value) {
		return fmt.Errorf("%w: %s %q: not JSON, or over %d bytes", ErrRefused, table, key, MaxValue)
	}
	if err := checkTable(table); err != nil {
		return err
	}
	b, err := r.tx.CreateBucketIfNotExists([]byte(table))
	if err != nil {
		return err
	}
	return b.Put([]byte(key), value)
}

// Delete removes a record, if it exists.
func (r *Raw) Delete(table, key string) error {
	if b := r.tx.Bucket([]byte(table)); b != nil {
		return b.Delete([]byte(key))
	}
	return nil
}

// Drop removes a table, if it exists.
func (r *Raw) Drop(table string) error {
	if r.tx.Bucket([]byte(table)) == nil {
		return nil
	}
	return r.tx.DeleteBucket([]byte(table))
}

func pairs(c *bbolt.Cursor) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}
