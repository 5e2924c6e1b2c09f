package web_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/event"
)

// seeCharacter checks that an owner can choose a robot's character from a list, and sees characters that others
// choose and import.
func seeCharacter(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	imported := func(id, name string) {
		h.Admin(http.MethodPost, "/api/v1/characters?id="+id, `{"spec":"agent-manifest/0.2","name":`+quote(name)+`}`, nil)
	}
	imported("leo", "Leo <b>")
	b := c.visit(t, h, "#/robots/"+kitchen)
	const choice = "p-robot-settings >>> [data-test=persona]"
	offers := func(what string) {
		b.until(`[...see.one("` + choice + `").options].some((o) => o.text === ` + quote(what) + `)`)
	}
	b.sees(choice)
	offers("Leo <b> (leo)")
	b.choose(choice, "leo")
	b.click("p-robot-settings >>> [data-test=save]")
	h.Eventually("the robot has it", func() bool { return h.Characters.Who(kitchen, "") == "leo" })
	b.inspect("a robot with a character")
	h.Admin(http.MethodPut, "/api/v1/devices/"+kitchen, `{"character":"default"}`, nil)
	b.until(`see.one("` + choice + `").value === ""`)
	imported("ada", "ada")
	offers("ada")
	h.Admin(http.MethodPut, "/api/v1/devices/"+kitchen, `{"character":"ada"}`, nil)
	b.until(`see.one("` + choice + `").value === "ada"`)
}

// seeDiary checks that new entries of the diary are listed at once, with the result of its verification.
func seeDiary(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	b := c.visit(t, h, "#/memory")
	b.says("p-diary", "Nothing is written yet.")
	b.says("[data-test=diary-result]", "there are no entries")
	h.Bus.Publish(kitchen, "s1", event.LoadEnded{URI: "robot.glb"})
	b.says("[data-test=diary-entry]", "robot.glb")
	h.Bus.Publish(kitchen, "s1", event.Said{Text: "Hello <b>Ann</b>."})
	b.says("[data-test=diary-entry]", "Hello <b>Ann</b>.")
	b.click("[data-test=diary-check]")
	b.says("[data-test=diary-result]", "Nothing was changed: 2 entries, the newest is number 2.")
	newest := h.Diary.Newest(1)
	if len(newest) != 1 || !strings.Contains(b.text("[data-test=diary-result]"), newest[0].Hash) {
		t.Errorf("the hash of %+v is not shown", newest)
	}
	b.inspect("the diary")
}

// seeRankedMemory checks that the best match is listed first, and that entries can be filtered by type and tag.
func seeRankedMemory(t *testing.T, c *chromium) {
	h := startAppliance(t)
	for _, fact := range []string{`{"text":"The spare key is in the shed.","type":"reference","tags":["key"]}`,
		`{"text":"Never play music at night.","type":"feedback","important":true,"tags":["music"]}`,
		`{"text":"Ann plays the cello.","type":"user","tags":["music"]}`} {
		h.Admin(http.MethodPost, "/api/v1/memory", fact, nil)
	}
	b := c.visit(t, h, "#/memory")
	b.says("#count", "3")
	first := func() string { return b.text("[data-test=memory]") }
	if text := first(); !strings.Contains(text, "Never play music") {
		t.Errorf("the first is %q", text)
	}
	b.choose("[data-test=memory-tag]", "music")
	b.says("#count", "2")
	b.lacks("[data-test=memory]=spare key")
	b.choose("[data-test=memory-type]", "user")
	b.says("#count", "1")
	if text := first(); !strings.Contains(text, "cello") {
		t.Errorf("of the type and the tag it is %q", text)
	}
	b.inspect("a memory of one type and tag")
	b.choose("[data-test=memory-tag]", "")
	b.choose("[data-test=memory-type]", "reference")
	b.says("[data-test=memory]", "spare key")
}
