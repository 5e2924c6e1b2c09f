package notice

import "time"

// Accept stores a notification, and returns it with its ID.
func (s *Store) Accept(n Notification, now time.Time) (Notification, error) {
	n, err := n.prepare(now)
	if err != nil {
		return Notification{}, err
	}
	_, err = s.insert(n, now)
	return n, err
}
