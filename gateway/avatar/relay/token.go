package relay

import (
	"net/url"
	"strings"
)

// tokens stores the tokens by which programs recognize Perch. A token is stored under the
// address of the program that issued it, and is sent to no other.
type tokens interface {
	Get(key string) (token string, found bool, err error)
	Put(key string, token string) error // durable when it returns
}

// mostToken bounds a token, in bytes. VTube Studio's have 64 at most.
const mostToken = 256

// tokenKey is the storage key of the token of the program at an address.
func (t *Target) tokenKey(address string) string {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return strings.Join([]string{t.Kind, t.Name, host}, "/")
}
