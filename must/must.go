// Package must ends a test where something fails that the test only needs.
package must

// T is a test, as of testing or of rapid.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends a test unless err is nil.
func Succeed(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
