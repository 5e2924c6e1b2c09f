package web_test

import "testing"

// TestPage opens the page of real appliances in a real browser, one for all. Its
// tests share nothing else, and run side by side.
func TestPage(t *testing.T) {
	c := startChromium(t)
	for name, f := range map[string]func(*testing.T, *chromium){
		"views, empty": seeEmpty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}

// views are all there are, by their addresses, and the elements they are.
func views() map[string]string {
	return map[string]string{"": "p-house", "memory": "p-memory", "notifications": "p-notifications", "timers": "p-timers", "turns": "p-turns",
		"sensed": "p-sensed", "firmware": "p-firmware", "engines": "p-engines", "doctor": "p-doctor", "logs": "p-logs", "backup": "p-backup",
		"connections": "p-connections", "settings": "p-settings", "first": "p-first"}
}

func seeEmpty(t *testing.T, c *chromium) {
	h := startHouse(t)
	b := c.browse(t)
	b.open(local(h))
	for hash, element := range views() {
		b.view(hash, element)
		for _, width := range []int64{1400, 360} {
			b.at(width, 800)
			b.axe(hash)
			b.fits(hash)
		}
	}
}
