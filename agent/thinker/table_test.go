package thinker_test

import (
	"iter"
	"maps"
)

// table is a table of the store, in memory.
type table[T any] map[string]T

func (t table[T]) Get(key string) (T, bool, error) { v, ok := t[key]; return v, ok, nil }
func (t table[T]) Put(key string, v T) error       { t[key] = v; return nil }
func (t table[T]) PutSoon(key string, v T)         { t[key] = v }
func (t table[T]) Delete(key string) error         { delete(t, key); return nil }
func (t table[T]) DeleteSoon(key string)           { delete(t, key) }
func (t table[T]) Err() error                      { return nil }
func (t table[T]) All() iter.Seq2[string, T]       { return maps.All(maps.Clone(t)) }
