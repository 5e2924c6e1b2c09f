package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
	"perch/ota/espimage/espimagetest"
)

// ledger records the values that the program has acknowledged, by name, and one change that a power cut may have
// interrupted: the name then has the old or the new value.
type ledger struct {
	kept       map[string]string // acknowledged values
	changing   string            // name that is being changed; empty if none is
	then       string            // new value of changing; empty if the change removes the value
	acts, cuts int               // numbers of acknowledged and of interrupted changes
	removals   int               // number of acknowledged removals
}

// change sends a request that changes the value of name to then.
func (l *ledger) change(name, then string, request func() error) error {
	l.changing, l.then = name, then
	err := request()
	if err == nil {
		l.set(name, then)
		l.changing = ""
		l.acts++
		if then == "" {
			l.removals++
		}
	}
	return err
}

func (l *ledger) set(name, value string) {
	if l.kept == nil {
		l.kept = map[string]string{}
	}
	if l.kept[name] = value; value == "" {
		delete(l.kept, name)
	}
}

// settle compares the acknowledged values with there, the values that the program has.
func (l *ledger) settle(there map[string]string) (faults []string) {
	if l.changing != "" {
		l.cuts++
		if got := there[l.changing]; got == l.then {
			l.set(l.changing, l.then)
		}
		l.changing = ""
	}
	for _, name := range slices.Sorted(maps.Keys(l.kept)) {
		if there[name] != l.kept[name] {
			faults = append(faults, fmt.Sprintf("%q is %q, and %q was acknowledged", name, there[name], l.kept[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if _, kept := l.kept[name]; !kept && there[name] != "" {
			faults = append(faults, fmt.Sprintf("%q is %q, which nobody was told", name, there[name]))
		}
	}
	return faults
}

// chore makes the program write data of one kind.
type chore struct {
	ledger
	name string
	act  func(ctx context.Context, c *chore, r *rand.Rand) error // makes one random change
	// there returns the values that the program has.
	there func(ctx context.Context) (map[string]string, error)
}

// facts returns a chore that stores and deletes facts in the memory.
func (o *outage) facts() *chore {
	type entry struct{ ID, Body string }
	all := func(ctx context.Context) (list []entry, err error) {
		err = o.ask(ctx, http.MethodGet, "/api/v1/memory", nil, &list)
		return list, err
	}
	return &chore{name: "facts",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			if len(c.kept) > 20 {
				list, err := all(ctx)
				if err != nil {
					return err
				}
				gone := list[r.IntN(len(list))]
				return c.change(gone.Body, "", func() error { return o.ask(ctx, http.MethodDelete, "/api/v1/memory/"+gone.ID, nil, nil) })
			}
			fact := fmt.Sprintf("fact %x is true", r.Uint64())
			return c.change(fact, "1", func() error {
				return o.ask(ctx, http.MethodPost, "/api/voice/remember", map[string]string{"fact": fact}, nil)
			})
		},
		there: func(ctx context.Context) (map[string]string, error) {
			list, err := all(ctx)
			counted := map[string]int{}
			for _, e := range list {
				counted[e.Body]++
			}
			there := map[string]string{}
			for body, n := range counted {
				there[body] = strconv.Itoa(n)
			}
			return there, err
		}}
}

// settings returns a chore that sets and unsets keys of the configuration.
func (o *outage) settings() *chore {
	const path = "/api/v1/config"
	keys := []string{"persona.name", "timezone", "memory.most", "robots.keep_turns"}
	return &chore{name: "settings",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			key := keys[r.IntN(len(keys))]
			if c.kept[key] != "" && r.IntN(3) == 0 {
				return c.change(key, "", func() error { return o.ask(ctx, http.MethodDelete, path+"/"+key, nil, nil) })
			}
			value := fmt.Sprint(100 + r.IntN(1000))
			if key == "timezone" {
				value = []string{"UTC", "Europe/Berlin", "Asia/Tokyo"}[r.IntN(3)]
			}
			return c.change(key, value, func() error { return o.ask(ctx, http.MethodPut, path+"/"+key, value, nil) })
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var shown config.Shown
			err := o.ask(ctx, http.MethodGet, path, nil, &shown)
			there := map[string]string{}
			for _, k := range shown.Keys {
				if k.From == "settings" {
					there[k.Key] = fmt.Sprint(k.Value)
				}
			}
			return there, err
		}}
}

// notices returns a chore that sends and replaces notifications for robots that are not connected. It posts them to
// path, with IDs that begin with prefix.
func (o *outage) notices(name, path, prefix string) *chore {
	return &chore{name: name,
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			n := r.IntN(12)
			id, text, robot := fmt.Sprint(prefix, n), fmt.Sprintf("note %x", r.Uint64()), fmt.Sprintf("A0:B1:C2:00:01:%02d", n)
			if err := o.adopted(ctx, robot); err != nil {
				return err
			}
			return c.change(id, text, func() error {
				var accepted struct{ ID string }
				return o.ask(ctx, http.MethodPost, path, map[string]any{"id": id, "text": text, "robot": robot}, &accepted)
			})
		},
		there: func(ctx context.Context) (map[string]string, error) { return o.open(ctx, prefix) }}
}

// acknowledgements returns a chore that sends and acknowledges notifications. An acknowledged notification must not
// appear again.
func (o *outage) acknowledgements() *chore {
	const prefix = "ack"
	return &chore{name: "acknowledgements",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			const robot = "A0:B1:C2:00:01:00"
			if err := o.adopted(ctx, robot); err != nil {
				return err
			}
			id, text := fmt.Sprint(prefix, r.IntN(3)), fmt.Sprintf("note %x", r.Uint64())
			if c.kept[id] != "" {
				return c.change(id, "", func() error { return o.ask(ctx, http.MethodPost, "/api/v1/notifications/"+id+"/ack", nil, nil) })
			}
			return c.change(id, text, func() error {
				return o.ask(ctx, http.MethodPost, "/api/v1/notifications", map[string]any{"id": id, "text": text, "robot": robot}, nil)
			})
		},
		there: func(ctx context.Context) (map[string]string, error) { return o.open(ctx, prefix) }}
}

// open returns the texts of the open notifications whose IDs begin with prefix, by ID, as a skin receives them.
func (o *outage) open(ctx context.Context, prefix string) (map[string]string, error) {
	w := appliancetest.WatchAt(o.t, o.url, appliancetest.Everything)
	defer w.Leave()
	if err := w.SendText([]byte(`{"type":"ping"}`)); err != nil {
		return nil, err
	}
	for {
		there := map[string]string{}
		for _, f := range w.Frames() {
			switch f["type"] {
			case "notification":
				if id := fmt.Sprint(f["id"]); strings.HasPrefix(id, prefix) {
					there[id] = fmt.Sprint(f["text"])
				}
			case "pong":
				return there, nil
			}
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// hoursLeft matches the answer about a timer of whole hours in its first minutes.
var hoursLeft = regexp.MustCompile(`(\d+) hours?( and 5\d minutes)?`)

// timers returns a chore that sets and cancels one timer of each of some robots.
func (o *outage) timers() *chore {
	const robots = 3
	mac := func(n int) string { return fmt.Sprintf("A0:B1:C2:00:02:%02d", n) }
	return &chore{name: "timers",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			robot := mac(r.IntN(robots))
			if err := o.adopted(ctx, robot); err != nil {
				return err
			}
			want, hours := "cancel the timer", ""
			if c.kept[robot] == "" {
				hours = strconv.Itoa(2 + r.IntN(18))
				want = "set a timer for " + hours + " hours"
			}
			return c.change(robot, hours, func() error {
				answer, err := o.chat(ctx, robot, want)
				if err == nil && !strings.Contains(answer, "starting now") && !strings.Contains(answer, "No timer is set any more") {
					return &errRefused{http.StatusOK, want + ": " + answer}
				}
				return err
			})
		},
		there: func(ctx context.Context) (map[string]string, error) {
			there := map[string]string{}
			for n := range robots {
				if err := o.adopted(ctx, mac(n)); err != nil {
					return nil, err
				}
				answer, err := o.chat(ctx, mac(n), "how much time is left on the timer")
				if err != nil {
					return nil, err
				}
				if strings.Contains(answer, "no timer") {
					continue
				}
				// The timer was set some seconds ago, so the answer has one hour less, and minutes.
				said := hoursLeft.FindStringSubmatch(answer)
				if said == nil {
					return nil, fmt.Errorf("of the timer it says %q", answer)
				}
				hours, _ := strconv.Atoi(said[1])
				if said[2] != "" {
					hours++
				}
				there[mac(n)] = strconv.Itoa(hours)
			}
			return there, nil
		}}
}

// adoption returns a chore that adopts and forgets robots. A token from before a robot was forgotten must not be
// valid again.
func (o *outage) adoption() *chore {
	const robots = 4
	mac := func(n int) string { return fmt.Sprintf("A0:B1:C2:00:03:%02d", n) }
	void := map[string]string{} // tokens of robots that were forgotten
	return &chore{name: "adoption",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			robot := mac(r.IntN(robots))
			token, err := o.checkIn(ctx, robot)
			if err != nil {
				return err
			}
			if c.kept[robot] == "" {
				err = c.change(robot, "adopted", func() error {
					return o.ask(ctx, http.MethodPost, "/api/v1/adopt", map[string]string{"robot": robot}, nil)
				})
				if forgotten(err) {
					c.changing = ""
					return nil
				}
				return err
			}
			void[token] = robot
			err = c.change(robot, "", func() error {
				return o.ask(ctx, http.MethodDelete, "/api/v1/devices/"+strings.ReplaceAll(robot, ":", ""), nil, nil)
			})
			if err != nil {
				delete(void, token) // the token may still be valid
			}
			return err
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var list []struct {
				MAC     string
				Adopted bool
			}
			if err := o.ask(ctx, http.MethodGet, "/api/v1/devices", nil, &list); err != nil {
				return nil, err
			}
			there := map[string]string{}
			for n := range robots {
				for _, d := range list {
					if strings.EqualFold(d.MAC, mac(n)) && d.Adopted {
						there[mac(n)] = "adopted"
					}
				}
				token, err := o.checkIn(ctx, mac(n))
				switch {
				case err != nil:
					return nil, err
				case (token != "") != (there[mac(n)] != ""):
					o.t.Errorf("%s is %q, and its token %q", mac(n), there[mac(n)], token)
				case token != "" && void[token] != "":
					o.t.Errorf("%s was given a token that was void", mac(n))
				}
			}
			return there, nil
		}}
}

// strangers returns a chore in which strangers check in and all strangers are forgotten. A forgotten stranger must
// not be listed until it checks in again.
func (o *outage) strangers() *chore {
	seen, gone := map[string]bool{}, map[string]bool{}
	return &chore{name: "strangers",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			if r.IntN(4) > 0 {
				mac := fmt.Sprintf("A0:B1:C2:00:04:%02d", r.IntN(20))
				seen[mac] = true
				delete(gone, mac)
				_, err := o.checkIn(ctx, mac)
				return err
			}
			if err := o.ask(ctx, http.MethodDelete, "/api/v1/strangers", nil, nil); err != nil {
				return err
			}
			c.acts++
			for mac := range seen {
				gone[mac] = true
			}
			clear(seen)
			return nil
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var list []struct{ MAC string }
			if err := o.ask(ctx, http.MethodGet, "/api/v1/devices", nil, &list); err != nil {
				return nil, err
			}
			there := map[string]string{}
			for _, d := range list {
				if mac := strings.ToUpper(d.MAC); gone[mac] {
					there[mac] = "back"
				}
			}
			return there, nil
		}}
}

// firmware returns a chore that publishes and removes firmware images.
func (o *outage) firmware() *chore {
	images := map[string][]byte{} // key: SHA-256
	for n := range 3 {
		image := simrobot.Image(fmt.Sprintf("9.0.%d", n), 32<<10)
		images[hashOf(image)] = image
	}
	names := slices.Sorted(maps.Keys(images))
	return &chore{name: "firmware",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			sha := names[r.IntN(len(names))]
			if c.kept[sha] != "" {
				return c.change(sha, "", func() error { return o.ask(ctx, http.MethodDelete, "/api/v1/firmware/"+sha, nil, nil) })
			}
			return c.change(sha, "published", func() error {
				return o.ask(ctx, http.MethodPost, "/api/v1/firmware?board=none", images[sha], nil)
			})
		},
		there: func(ctx context.Context) (map[string]string, error) {
			there := map[string]string{}
			list, err := o.catalogue(ctx)
			for sha := range list {
				if images[sha] != nil {
					there[sha] = "published"
				}
			}
			if err != nil {
				return nil, err
			}
			return there, o.images(slices.Sorted(maps.Keys(list)))
		}}
}

// rollouts returns a chore that changes the rollout of one firmware image.
func (o *outage) rollouts() *chore {
	image := simrobot.Image("9.1.0", 32<<10)
	sha, published := hashOf(image), false
	return &chore{name: "rollouts",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			if !published {
				if err := o.ask(ctx, http.MethodPost, "/api/v1/firmware?board=none", image, nil); err != nil {
					return err
				}
				published = true
				c.set(sha, "0 %")
			}
			percent := 1 + r.IntN(100)
			plan := map[string]any{"boards": []string{"none"}, "percent": percent}
			return c.change(sha, fmt.Sprint(percent, " %"), func() error {
				return o.ask(ctx, http.MethodPost, "/api/v1/firmware/"+sha+"/rollout", plan, nil)
			})
		},
		there: func(ctx context.Context) (map[string]string, error) {
			there := map[string]string{}
			list, err := o.catalogue(ctx)
			if percent, listed := list[sha]; listed && published { // otherwise a power cut has interrupted the publication
				there[sha] = fmt.Sprint(percent, " %")
			}
			return there, err
		}}
}

// catalogue returns the percentage of each image's rollout, by SHA-256.
func (o *outage) catalogue(ctx context.Context) (map[string]int, error) {
	var list []struct {
		SHA256  string
		Rollout struct{ Percent int }
	}
	err := o.ask(ctx, http.MethodGet, "/api/v1/firmware", nil, &list)
	all := map[string]int{}
	for _, i := range list {
		all[i.SHA256] = i.Rollout.Percent
	}
	return all, err
}

// images checks the files of the firmware images: there is a complete file for each listed image, and no other file.
func (o *outage) images(listed []string) error {
	files, err := os.ReadDir(filepath.Join(o.data, "firmware"))
	if err != nil {
		return err
	}
	var there []string
	for _, f := range files {
		if f.Name() == "orphaned" || f.Name() == "assets" { // interrupted uploads, and the files that the chore assets checks
			continue
		}
		image, err := os.ReadFile(filepath.Join(o.data, "firmware", f.Name()))
		if err != nil {
			return err
		}
		if f.Name() != hashOf(image)+".bin" {
			return fmt.Errorf("%s is not what it is called", f.Name())
		}
		there = append(there, hashOf(image))
	}
	if !slices.Equal(there, listed) {
		return fmt.Errorf("there are the files %v, and %v are listed", there, listed)
	}
	return nil
}

// assets returns a chore that publishes, replaces and removes assets.
func (o *outage) assets() *chore {
	return &chore{name: "assets",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			name := fmt.Sprintf("font%d.bin", r.IntN(3))
			path := "/api/v1/assets/" + name
			if c.kept[name] != "" && r.IntN(3) == 0 {
				return c.change(name, "", func() error { return o.ask(ctx, http.MethodDelete, path, nil, nil) })
			}
			file := espimagetest.Font(1000 + r.IntN(30_000))
			return c.change(name, hashOf(file), func() error { return o.ask(ctx, http.MethodPost, path, file, nil) })
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var list []struct{ Name string }
			if err := o.ask(ctx, http.MethodGet, "/api/v1/assets", nil, &list); err != nil {
				return nil, err
			}
			there := map[string]string{}
			for _, a := range list {
				file, err := os.ReadFile(filepath.Join(o.data, "firmware", "assets", a.Name))
				if err != nil {
					return nil, err
				}
				there[a.Name] = hashOf(file)
			}
			files, err := os.ReadDir(filepath.Join(o.data, "firmware", "assets"))
			switch {
			case errors.Is(err, fs.ErrNotExist) && len(list) == 0:
				return there, nil
			case err == nil && len(files) != len(list):
				err = fmt.Errorf("there are the files %v, and %v are listed", files, list)
			}
			return there, err
		}}
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
