// Package must ends a test if a step fails that the test only needs.
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

// Value returns a function that returns v, or ends a test unless err is nil:
// must.Value(os.ReadFile(name))(t) is what the file holds.
func Value[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		Succeed(t, err)
		return v
	}
}
