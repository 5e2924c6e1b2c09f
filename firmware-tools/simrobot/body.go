package simrobot

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// body is the state of the robot's head, reminders and camera. Settings are in the flash.
type body struct {
	yaw, pitch  int // degrees
	reminders   []reminder
	reminderID  int    // ID of the latest reminder
	visionURL   string // URL for photos; empty until the server sends it
	visionToken string
}

// reminder is a reminder as the tool get_reminders returns it.
type reminder struct {
	ID      int       `json:"id"`
	Seconds int       `json:"duration_seconds"`
	Message string    `json:"message"`
	Repeat  bool      `json:"repeat"`
	due     time.Time // when the robot rings next
}

// ringReminders rings for due reminders, and then removes them or, if they repeat, sets them again.
// It is called with and without an open channel.
func (r *Robot) ringReminders(now time.Time) {
	remaining := r.body.reminders[:0]
	for _, m := range r.body.reminders {
		if !now.Before(m.due) {
			r.o.Observe(Reminded{ID: m.ID, Message: m.Message})
			if !m.Repeat {
				continue
			}
			m.due = m.due.Add(time.Duration(m.Seconds) * time.Second)
		}
		remaining = append(remaining, m)
	}
	r.body.reminders = remaining
}

// nextReminder returns the time of the next reminder, or the zero time if none exists.
func (b *body) nextReminder() (due time.Time) {
	for _, m := range b.reminders {
		if due.IsZero() || m.due.Before(due) {
			due = m.due
		}
	}
	return due
}

// The following functions implement most tools that toolset returns. The slow ones are in other files.

func deviceStatus(s *session, _ time.Time, _ values) (string, error) {
	f := s.r.flash
	return fmt.Sprintf(`{"audio_speaker":{"volume":%d},"screen":{"brightness":%d,"theme":%s},"battery":{"level":82,"charging":false},`+
		`"network":{"type":"wifi","ssid":"%s","signal":"strong"},"chip":{"temperature":41.5}}`,
		f.Volume, f.Brightness, quote(f.Theme), ssid), nil
}

func setVolume(s *session, _ time.Time, v values) (string, error) {
	s.r.flash.Volume = v.int("volume")
	s.r.o.Observe(VolumeChanged{Volume: s.r.flash.Volume})
	return "true", nil
}

func setBrightness(s *session, _ time.Time, v values) (string, error) {
	s.r.flash.Brightness = v.int("brightness")
	return "true", nil
}

func setTheme(s *session, _ time.Time, v values) (string, error) {
	theme := v.text("theme")
	if theme != "light" && theme != "dark" {
		return "false", nil
	}
	s.r.flash.Theme = theme
	return "true", nil
}

func headAngles(s *session, _ time.Time, _ values) (string, error) {
	return fmt.Sprintf(`{"yaw":%d,"pitch":%d}`, s.r.body.yaw, s.r.body.pitch), nil
}

// keepAngle is the value of an argument that leaves the angle unchanged.
const keepAngle = -9999

func setHeadAngles(s *session, _ time.Time, v values) (string, error) {
	b := &s.r.body
	if yaw := v.int("yaw"); yaw != keepAngle {
		b.yaw = max(-128, yaw) // bind accepts angles below the servo's range, because the schema's minimum is keepAngle
	}
	if pitch := v.int("pitch"); pitch != keepAngle {
		b.pitch = max(0, pitch)
	}
	s.r.o.Observe(HeadMoved{Yaw: b.yaw, Pitch: b.pitch, Speed: v.int("speed")})
	return "true", nil
}

// acceptCall implements tools whose effect is not simulated.
func acceptCall(*session, time.Time, values) (string, error) { return "true", nil }

func createReminder(s *session, now time.Time, v values) (string, error) {
	b := &s.r.body
	b.reminderID++
	seconds := v.int("duration_seconds")
	b.reminders = append(b.reminders, reminder{
		ID: b.reminderID, Seconds: seconds, Message: v.text("message"), Repeat: string(v["repeat"]) == "true",
		due: now.Add(time.Duration(seconds) * time.Second),
	})
	return strconv.Itoa(b.reminderID), nil
}

func reminders(s *session, _ time.Time, _ values) (string, error) {
	text, err := json.Marshal(append([]reminder{}, s.r.body.reminders...))
	return string(text), err
}

func stopReminder(s *session, _ time.Time, v values) (string, error) {
	b := &s.r.body
	oldLen := len(b.reminders)
	b.reminders = slices.DeleteFunc(b.reminders, func(m reminder) bool { return m.ID == v.int("id") })
	return strconv.FormatBool(len(b.reminders) < oldLen), nil
}

func rebootTool(s *session, now time.Time, _ values) (string, error) {
	s.reboot(now)
	return "true", nil
}

// upgradeTool reboots the robot, which then installs the image if Options.Upgrades is set.
func upgradeTool(s *session, now time.Time, v values) (string, error) {
	if v.text("url") == "" {
		return "", errors.New("no url")
	}
	s.r.imageURL = v.text("url")
	s.reboot(now)
	return "true", nil
}

func setAssetsURL(s *session, _ time.Time, v values) (string, error) {
	s.r.flash.AssetsURL = v.text("url")
	return "true", nil
}
