package language

// KeyError is an error of one key of the configuration. Its text begins with the key.
type KeyError struct {
	Key string
	Why error
}

// OfKey returns a KeyError.
func OfKey(key string, why error) error { return KeyError{key, why} }

func (e KeyError) Error() string { return e.Key + ": " + e.Why.Error() }

// Unwrap returns the error without its key.
func (e KeyError) Unwrap() error { return e.Why }
