package limit

// First returns the key of the value that comes first by an order, which is the one that
// gives way where a map is full. Values of which neither is before the other give way in
// any order. It returns the zero key for an empty map.
func First[K comparable, V any](m map[K]V, compare func(a, b V) int) (first K) {
	found := false
	for key, value := range m {
		if !found || compare(value, m[first]) < 0 {
			first, found = key, true
		}
	}
	return first
}
