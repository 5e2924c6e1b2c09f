package simrobot

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// body is the state of the robot that its tools change, except for its flash.
type body struct {
	yaw, pitch  int // degrees
	reminders   []reminder
	reminderID  int
	visionURL   string // in RAM: a reboot forgets it
	visionToken string
}

type reminder struct {
	ID      int    `json:"id"`
	Seconds int    `json:"duration_seconds"`
	Message string `json:"message"`
	Repeat  bool   `json:"repeat"`
	due     time.Time
}

// ring removes the reminders that are due, and sets the repeating ones again. The
// robot rings by itself, with or without a channel.
func (r *Robot) ring(now time.Time) {
	waiting := r.body.reminders[:0]
	for _, m := range r.body.reminders {
		if !now.Before(m.due) {
			r.o.Observe(Reminded{ID: m.ID, Message: m.Message})
			if !m.Repeat {
				continue
			}
			m.due = m.due.Add(time.Duration(m.Seconds) * time.Second)
		}
		waiting = append(waiting, m)
	}
	r.body.reminders = waiting
}

// nextReminder returns when the next reminder rings, or the zero time.
func (b *body) nextReminder() (due time.Time) {
	for _, m := range b.reminders {
		if due.IsZero() || m.due.Before(due) {
			due = m.due
		}
	}
	return due
}

func status(s *session, _ time.Time, _ values) (string, error) {
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

// keepAngle is the minimum of the schema. It leaves an angle unchanged.
const keepAngle = -9999

func setHeadAngles(s *session, _ time.Time, v values) (string, error) {
	b := &s.r.body
	if yaw := v.int("yaw"); yaw != keepAngle {
		b.yaw = max(-128, yaw) // the range of the servos
	}
	if pitch := v.int("pitch"); pitch != keepAngle {
		b.pitch = max(0, pitch)
	}
	s.r.o.Observe(HeadMoved{Yaw: b.yaw, Pitch: b.pitch, Speed: v.int("speed")})
	return "true", nil
}

// accept implements tools whose effect cannot be observed.
func accept(*session, time.Time, values) (string, error) { return "true", nil }

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
	before := len(b.reminders)
	b.reminders = slices.DeleteFunc(b.reminders, func(m reminder) bool { return m.ID == v.int("id") })
	return strconv.FormatBool(len(b.reminders) < before), nil
}

func rebootTool(s *session, now time.Time, _ values) (string, error) {
	s.reboot(now)
	return "true", nil
}

// upgradeTool closes the channel before it downloads. Without Options.Upgrades
// nothing is downloaded, and the robot reboots with its present firmware.
func upgradeTool(s *session, now time.Time, v values) (string, error) {
	if v.text("url") == "" {
		return "", errors.New("no url")
	}
	s.r.wanted = v.text("url")
	s.reboot(now)
	return "true", nil
}

func setAssetsURL(s *session, _ time.Time, v values) (string, error) {
	s.r.flash.AssetsURL = v.text("url")
	return "true", nil
}
