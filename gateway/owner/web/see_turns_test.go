package web_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/gateway/owner/daily"
	"perch/gateway/robot"
	"perch/must"
	"perch/store"
)

// counted starts an appliance with two robots, a week of daily sums and some turns.
func counted(t *testing.T) *appliancetest.Appliance {
	t.Helper()
	h := startAppliance(t, kitchenMAC, guestMAC)
	h.Admin(http.MethodPut, "/api/v1/devices/"+kitchen, `{"name":"Kitchen"}`, nil)
	h.Admin(http.MethodPut, "/api/v1/devices/"+guest, `{"name":"Study"}`, nil)
	days, now := store.NewTable[daily.Day](h.DB, "days"), time.Now().UTC()
	for i := range daily.KeptDays {
		date := now.AddDate(0, 0, -i).Format(time.DateOnly)
		d := daily.Day{Robot: kitchen, Date: date, Talks: daily.Hours{7: 3 + i, 8: 1, 18: 6, 19: 9, 21: 2},
			Waits:   map[string]daily.Wait{"first_token": {Turns: 10, Ms: 11_000}, "endpoint": {Turns: 10, Ms: 7000}, "recognize": {Turns: 10, Ms: 3000}, "first_packet": {Turns: 10, Ms: 25_000}, "first_audio": {Turns: 10, Ms: 2000}},
			Battery: daily.Hours{}, Signal: daily.Hours{}, Moods: map[string]daily.Hours{"curiosity": {8: 40_000, 19: 90_000}, "celebration": {19: 12_000}},
			Sensed: map[string]daily.Hours{"face_detected": {7: 12, 8: 4, 19: 30}, "sound": {7: 2, 19: 5}, "a_very_long_name_of_a_sense_that_nobody_knows": {3: 1}}}
		for hour := range 24 {
			if hour%2 == 0 {
				d.Battery[hour], d.Signal[hour] = 100-3*hour-i, 1+(hour+i)%3
			}
		}
		if i == 0 { // today has not gone on beyond noon
			d.Moods = nil
		}
		days.PutSoon(date+"/"+kitchen, d)
	}
	days.PutSoon(now.Format(time.DateOnly)+"/"+guest, daily.Day{Robot: guest, Date: now.Format(time.DateOnly), Talks: daily.Hours{12: 50}})
	turns := store.NewTable[robot.TurnRecord](h.DB, "turns")
	stages := func(ms ...int64) map[string]int64 {
		all := map[string]int64{}
		for i, name := range []string{event.StageEndpoint, event.StageRecognize, event.StageFirstToken, event.StageFirstSentence, event.StageFirstAudio, event.StageFirstPacket} {
			all[name] = ms[i]
		}
		return all
	}
	for i, one := range []robot.TurnRecord{
		{Robot: kitchen, Heard: "when does the train go", Said: "At nine.", End: "done", Stages: stages(600, 100, 800, 100, 50, 2400),
			Details: robot.Details{Brain: "openai", Thoughts: "They mean the train to Lyon.", Tools: []robot.ToolUse{{Name: "search", Status: "done", Detail: "trains"}},
				Calls: []robot.ToolCall{{Name: "self.robot.set_head_angles", Arguments: `{"yaw":-45}`, Result: "true"}}}},
		{Robot: kitchen, Heard: "=cmd|' /C calc'!A0", Said: "I do not know.", End: "failed", Stages: stages(600, 100, 800, 700, 500, 1200), Details: robot.Details{Reason: "the model is away"}},
		{Robot: guest, Heard: "what time is it", Said: "It is late.", End: "done", Stages: stages(600, 50, 5, 1, 4, 660)},
		{Robot: guest, Said: "The washing is done.", End: "done"},
	} {
		one.Session, one.At = "s", now.Add(-time.Duration(i)*time.Minute)
		turns.PutSoon(one.At.Format("20060102T150405.000000000"), one)
	}
	return h
}

// seeTurns checks the plots of a week, and that turns can be searched, opened and saved.
func seeTurns(t *testing.T, c *chromium) {
	h := counted(t)
	b := c.visit(t, h, "")
	b.view("turns", "p-turns")
	b.says("[data-test=count]", "4 turns")
	b.says("[data-test=talks]", "12 PM: 50 sentences")
	b.says("[data-test=busiest]", "at 12 PM")
	b.says("[data-test=advice]", "The longest part: thinking.")
	b.click("[data-test=turn] >>> summary")
	for _, text := range []string{"They mean the train to Lyon.", "openai", "search", "first sound after 2,400 ms", "sending 750 ms"} {
		b.says("[data-test=whole]", text)
	}
	if value[bool](b, `see.has("[data-test=raw] >>> pre")`) {
		t.Error("the JSON is shown before it is asked for")
	}
	b.click("[data-test=raw] >>> summary")
	b.says("[data-test=raw] >>> pre", `"yaw": -45`)
	// The length of each bar must match the number beside it.
	bars := value[[]struct{ Bar, Told float64 }](b, `see.all("[data-test=whole] >>> .stages").map((e) => ({
		bar: [...e.querySelectorAll("rect")].reduce((n, r) => n + Number(r.getAttribute("width")), 0), told: Number(see.text(e.querySelector("[data-test=stages]")).replace(/\D/g, "")) }))`)
	if len(bars) != 3 {
		t.Errorf("%d bars", len(bars))
	}
	for _, one := range bars {
		if one.Bar != one.Told {
			t.Errorf("a bar of %v ms is told as %v ms", one.Bar, one.Told)
		}
	}
	b.inspect("turns, one open")
	b.inLight("dark")
	b.inspect("turns in the dark")
	b.inLight("light")

	b.at(1400, 900)
	b.fill("#search", "TRAIN lyon")
	b.says("[data-test=count]", "1 turn")
	b.until(`location.hash === "#/turns?q=TRAIN+lyon"`)
	b.choose("#robot", "Kitchen")
	b.choose("#outcome", "failed")
	b.says("main", "No turn fits")
	b.inspect("nothing found")
	b.at(1400, 900)
	b.click("[data-test=all]")
	b.says("[data-test=count]", "4 turns")
	b.view("turns?robot="+kitchen+"&outcome=failed", "p-turns") // a link with filters
	b.says("[data-test=count]", "1 turn")
	b.says("#robot", "Kitchen")
	b.click("[data-test=csv]")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(b.download("perch-turns*.csv")), "\ufeff"))).ReadAll()
	must.Succeed(t, err)
	if len(rows) != 2 || rows[1][1] != "Kitchen" || rows[1][2] != "'=cmd|' /C calc'!A0" || rows[1][5] != "1200" {
		t.Errorf("saved %q", rows)
	}
	b.click("[data-test=json]")
	var saved []robot.TurnRecord
	must.Succeed(t, json.Unmarshal(b.download("perch-turns*.json"), &saved))
	if len(saved) != 1 || saved[0].Reason != "the model is away" {
		t.Errorf("saved %+v", saved)
	}
}

// seeWeek checks the plots of a robot's battery, signal, moods and perception, and that its tools are shown on request only.
func seeWeek(t *testing.T, c *chromium) {
	h := counted(t)
	b := c.visit(t, h, "")
	b.view("robots/"+kitchen, "p-robot")
	b.says("[data-test=reported]", "Battery: 34 % last, 28 % at the lowest")
	b.says("[data-test=reported]", "Wi-Fi signal: medium last, weak at the weakest")
	b.says("p-robot-week", "It was calm all day.")
	b.choose("[data-test=day]", value[string](b, `see.one("[data-test=day]").options[1].value`))
	b.says("[data-test=moods]", "7 PM: 90 s")
	b.says("[data-test=sensed-day]", "7 AM: 12 times")
	b.click("[data-test=reported] >>> summary")
	b.says("[data-test=reported] >>> table", "weak")
	b.lacks("p-tools")
	b.inspect("a robot's week")
	b.at(1400, 900)
	b.click("[data-test=details] >>> summary")
	b.sees("p-tools")
	b.inspect("a robot's details")
	b.view("robots/"+guest, "p-robot")
	b.says("p-robot-week", "This robot has reported neither battery nor signal.")
	b.view("sensed", "p-sensed")
	b.says("[data-test=sensed-day]", "7 PM: 30 times")
	b.inspect("what was sensed")
	h.Bus.Publish(device.ID(guest), "s", event.Perceived{Name: "touch", Data: []byte("{}")})
	b.view("robots/"+guest, "p-robot")
	b.says("[data-test=sensed-day]", "1 time")
}
