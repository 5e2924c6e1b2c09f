package homeassistant

import "iter"

// table stores values by key.
type table[T any] interface {
	Get(key string) (T, bool, error)
	Put(key string, v T) error // durable when it returns
	PutSoon(key string, v T)   // may be lost in a power cut
	DeleteSoon(key string)
	All() iter.Seq2[string, T]
}
