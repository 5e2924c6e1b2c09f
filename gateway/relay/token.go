package relay

import (
	"net/url"
	"strings"
)

// tokens are what programs have given to be recognized by. A token is kept with the
// address of the program that gave it, and is sent nowhere else.
type tokens interface {
	Get(key string) (token string, found bool, err error)
	Put(key string, token string) error // durable when it returns
}

// mostToken bounds a token, in bytes. VTube Studio's have 64 at most.
const mostToken = 256

// tokenKey is what the token of the program at an address is kept by.
func (t *Target) tokenKey(address string) string {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return strings.Join([]string{t.Kind, t.Name, host}, "/")
}
