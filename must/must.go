// Package must ends a test when a step that is not under test fails.
package must

// T is implemented by *testing.T, and by *rapid.T of pgregory.net/rapid.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends a test if err is not nil.
func Succeed(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value returns a function that returns v, or ends a test if err is not nil. It wraps a call with two
// results: must.Value(os.ReadFile(name))(t) is the content of the file.
func Value[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		Succeed(t, err)
		return v
	}
}
