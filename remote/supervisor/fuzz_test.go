package supervisor

import (
	"net/url"
	"strings"
	"testing"

	"perch/must"
)

// FuzzAnswer checks that every response of the Supervisor results in a broker with a valid URL, or in
// an error that does not contain the token.
func FuzzAnswer(f *testing.F) {
	const token = "canary-of-the-supervisor"
	for _, s := range []string{
		`{"result":"ok","data":{"host":"core-mosquitto","port":1883,"ssl":false,"username":"u","password":"p"}}`,
		`{"result":"ok","data":{"host":"::1","port":"8883","ssl":true}}`,
		`{"result":"ok","data":{"host":"a/b?c#d","port":1}}`,
		`{"result":"error","message":"` + token + `"}`, `{"result":"ok","data":null}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	c, err := New(Options{URL: Home, Token: token})
	must.Succeed(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		var s service
		if err := c.unwrap(text, &s); err != nil {
			if strings.Contains(err.Error(), token) || len(err.Error()) > 900 {
				t.Errorf("%q", err)
			}
			return
		}
		b, ok := s.broker()
		if !ok {
			return
		}
		u, err := url.Parse(b.URL)
		if err != nil || u.Hostname() == "" || u.Port() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q: %v", b.URL, err)
		}
	})
}
