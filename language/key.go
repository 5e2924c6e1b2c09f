package language

// KeyError is an error in the value of a configuration key.
type KeyError struct {
	Key string // such as "url"
	Why error  // the error without the key
}

// OfKey returns a KeyError for a key.
func OfKey(key string, why error) error { return KeyError{key, why} }

// Error returns the key, a colon, and the text of the error.
func (e KeyError) Error() string { return e.Key + ": " + e.Why.Error() }

// Unwrap returns the error without its key.
func (e KeyError) Unwrap() error { return e.Why }
