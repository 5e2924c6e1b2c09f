package limit

// First returns the key of the smallest value by compare, which is to be evicted if a map is
// full. Of equal values any may be chosen. It returns the zero key for an empty map.
func First[K comparable, V any](m map[K]V, compare func(a, b V) int) (first K) {
	found := false
	for key, value := range m {
		if !found || compare(value, m[first]) < 0 {
			first, found = key, true
		}
	}
	return first
}
