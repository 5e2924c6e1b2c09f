package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// seeMemory checks that an entry that is written on the page is stored, and that an entry of a robot is shown at once.
func seeMemory(t *testing.T, c *chromium) {
	h := startAppliance(t)
	b := c.visit(t, h, "#/memory")
	b.fill("[data-test=memory-text]", "The cat is called Miso.")
	b.click("[data-test=memory-add]")
	b.says("[data-test=memory]", "Miso")
	h.Admin(http.MethodPost, "/api/v1/memory", `{"text":"The dog is called Anko."}`, nil)
	b.says("[data-test=memory]", "Anko")
	b.click("[data-test=memory]=Miso >>> [data-test=edit]")
	b.fill("#edit-text", "The cat is called Mochi.")
	b.click("[data-test=save]")
	b.says("[data-test=memory]", "Mochi")
	if _, text := h.Owner(http.MethodGet, "/api/v1/memory", ""); !strings.Contains(text, "Mochi") || strings.Contains(text, "Miso") {
		t.Errorf("remembered is %s", text)
	}
	b.fill("#search", "dog")
	b.lacks("[data-test=memory]=Mochi")
	b.fill("#search", " ")
	b.click("[data-test=memory]=Anko >>> [data-test=forget]")
	b.lacks("[data-test=memory]=Anko")
	b.axe("a memory that is forgotten unless its owner thinks again")
	b.click("[data-test=undo]")
	b.sees("[data-test=memory]=Anko")
	if _, text := h.Owner(http.MethodGet, "/api/v1/memory", ""); !strings.Contains(text, "Anko") {
		t.Errorf("remembered is %s", text)
	}
	b.click("[data-test=memory]=Anko >>> [data-test=forget]")
	b.view("timers", "p-timers")
	b.view("memory", "p-memory")
	b.lacks("[data-test=memory]=Anko")
	b.click("[data-test=memory]=Mochi >>> [data-test=forget]")
	b.lacks("[data-test=memory]=Mochi")
	var kept []struct{ ID string }
	h.Admin(http.MethodGet, "/api/v1/memory", "", &kept)
	h.Admin(http.MethodDelete, "/api/v1/memory/"+kept[0].ID, "", nil) // by another owner, before the page does it
	b.allow("status of 404")
	b.view("timers", "p-timers")
	b.says("[data-test=note]", "Not done: ")
	b.axe("work that has failed after its view was left")
	b.view("memory", "p-memory")
	b.click("[data-test=memory-add]")
	b.says("#add", "Write what Perch")
	if _, text := h.Owner(http.MethodGet, "/api/v1/memory", ""); strings.Contains(text, "Anko") {
		t.Errorf("remembered is %s", text)
	}
}

// seeTwoOwners checks that an owner who edits an entry is told if another owner has changed it meanwhile.
func seeTwoOwners(t *testing.T, c *chromium) {
	h := startAppliance(t)
	h.Admin(http.MethodPost, "/api/v1/memory", `{"text":"The key is in the bowl."}`, nil)
	first, second := c.comeIn(t, h), c.comeIn(t, h)
	for _, b := range []*tab{first, second} {
		b.open(h.LocalURL() + "#/memory")
		b.click("[data-test=edit]")
		b.says("#edit-text", "bowl")
	}
	first.fill("#edit-text", "The key is at Ann's.")
	first.click("[data-test=save]")
	first.says("[data-test=memory]", "Ann's")
	second.sees("main >>> [role=alert]")
	second.says("#edit-text", "bowl")
}

// seeNotifications checks that a notification can be sent, is shown on all pages, and ends when it is acknowledged.
func seeNotifications(t *testing.T, c *chromium) {
	h := startAppliance(t)
	home, b := c.visit(t, h, ""), c.visit(t, h, "#/notifications")
	b.click("[data-test=notification-send]")
	b.says("#send", "Write what")
	b.fill("[data-test=notification-text]", "The washing is done.")
	b.click("[data-test=notification-send]")
	b.says("#open >>> [data-test=notification]", "washing")
	home.says("[data-test=notice]", "washing")
	home.click("[data-test=notice] >>> [data-test=ack]")
	home.click("[data-test=note] [data-test=close]") // ends the time in which the acknowledgement can be undone
	b.lacks("#open")
	b.says("#recent", "washing")
}

// seeQuestions checks that permissions that a coding agent requests can be given and denied on the page.
func seeQuestions(t *testing.T, c *chromium) {
	var asking sync.WaitGroup
	t.Cleanup(asking.Wait)
	h := startAppliance(t)
	b := c.visit(t, h, "")
	for command, does := range map[string]struct{ where, click, says string }{
		"make test":    {"", "[data-test=question] [data-test=allow]", `"allow"`},
		"make install": {"notifications", "[data-test=question] [data-test=no]", `"deny"`},
	} {
		b.view(does.where, map[string]string{"": "p-home", "notifications": "p-notifications"}[does.where])
		answer := make(chan string, 1)
		h.StartAskPermission(&asking, command, func(a string) { answer <- a })
		b.says("[data-test=question]", command)
		b.click(does.click)
		b.lacks("[data-test=question]")
		if got := <-answer; !strings.Contains(got, does.says) {
			t.Errorf("%s: answered %s, want %s", command, got, does.says)
		}
	}
}

// seeTimers checks that a timer that was set at a robot is shown at once and can be cancelled, and that timers can be set
// on the page, and alarms that repeat. A fault is shown at its field.
func seeTimers(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	b := c.visit(t, h, "#/timers")
	b.sees("main >>> p-empty")
	h.StartCompanion(simrobot.Options{Firmware: "dotty", Stay: true, Events: appliancetest.Idle(),
		Say: appliancetest.Sentences(t, "set a timer for twenty minutes")})
	b.sees("[data-test=timer]")
	b.axe("a timer")
	b.click("[data-test=timer] [data-test=cancel]")
	b.sees("main >>> p-empty")
	b.click("[data-test=undo]")
	b.click("[data-test=timer] [data-test=cancel]")
	b.sees("main >>> p-empty")
	b.view("memory", "p-memory") // leaving the view carries out what could be undone until then
	b.view("timers", "p-timers")
	b.sees("main >>> p-empty")
	if _, text := h.Owner(http.MethodGet, "/api/v1/timers", ""); strings.TrimSpace(text) != "[]" {
		t.Errorf("timers are %s", text)
	}
	b.fill("[data-test=timer-minutes]", "2000")
	b.click("[data-test=timer-set]")
	b.says("#set", "1440 minutes")
	b.inspect("a timer that is too long")
	b.fill("[data-test=timer-minutes]", "0.5")
	b.fill("[data-test=timer-text]", "Tea is ready.")
	b.choose("[data-test=timer-robot]", "a0b1c2d3e4f5")
	b.click("[data-test=timer-set]")
	b.says("[data-test=timer]", "Tea is ready.")
	b.choose("[data-test=timer-kind]", "at")
	b.click("[data-test=timer-set]")
	b.says("#set", "Choose a time")
	b.choose("[data-test=timer-at]", "07:30")
	b.fill("[data-test=timer-text]", "Good morning.")
	b.click("[data-test=timer-set]")
	b.says("[data-test=timer]=Good", "07:30")
	b.choose("[data-test=timer-at]", "06:15")
	b.choose("[data-test=timer-days]", "sat sun")
	b.fill("[data-test=timer-text]", "Weekend.")
	b.click("[data-test=timer-set]")
	b.says("[data-test=timer]=Weekend", "at weekends")
	b.axe("an alarm that repeats")
	if _, text := h.Owner(http.MethodGet, "/api/v1/timers", ""); !strings.Contains(text, `"at":"06:15","days":"sat sun"`) {
		t.Errorf("timers are %s", text)
	}
}

// written writes a file to a temporary directory and returns its path.
func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Succeed(t, os.WriteFile(path, content, 0o600))
	return path
}

// upload uploads an image in the firmware view.
func (b *tab) upload(file string) {
	b.t.Helper()
	b.give("#upload [name=file]", file)
	b.fill("#upload [name=boards]", "m5stack-stack-chan")
	b.click("#upload [data-test=upload]")
}

// seeRollouts checks that an image can be uploaded, rolled out to half of the robots, paused and resumed.
func seeRollouts(t *testing.T, c *chromium) {
	h := startAppliance(t, kitchenMAC)
	b := c.visit(t, h, "#/firmware")
	b.upload(written(t, "app.bin", simrobot.Image("1.5.0", 64<<10)))
	b.says("[data-test=image]", "1.5.0")
	b.click("[data-test=plan] summary")
	b.axe("a plan for an image")
	b.click("[data-test=plan] [name=auto]")
	b.fill("[data-test=plan] [name=percent]", "50")
	b.click("[data-test=plan] [data-test=save]")
	plan := func(what, want string) {
		t.Helper()
		h.Eventually(what, func() bool {
			_, text := h.Owner(http.MethodGet, "/api/v1/firmware", "")
			return strings.Contains(text, want)
		})
	}
	plan("half of them", `"percent":50`)
	b.says("[data-test=image] .tag", "50")
	b.click("[data-test=image] [data-test=pause]")
	plan("it is paused", `"paused":true`)
	b.says("[data-test=image] .tag", "Paused")
	b.click("[data-test=image] [data-test=pause]")
	b.lacks("[data-test=image] .tag=Paused")
	if _, text := h.Owner(http.MethodGet, "/api/v1/firmware", ""); strings.Contains(text, `"paused":true`) {
		t.Errorf("the rollout is %s", text)
	}
}

// seeRefusedUploads checks that each refused upload is explained by a sentence, and that nothing of it is stored.
func seeRefusedUploads(t *testing.T, c *chromium) {
	h := startAppliance(t)
	b := c.comeIn(t, h)
	b.allow("status of 4")
	b.open(h.LocalURL() + "#/firmware")
	image := simrobot.Image("1.5.0", 64<<10)
	for name, content := range map[string][]byte{
		"notes.txt": []byte("Dear diary"), "cut.bin": image[:len(image)/2], "huge.bin": append(image, make([]byte, 17<<20)...)} {
		b.upload(written(t, name, content))
		b.sees("#refused")
		if says := b.text("#refused"); len(says) < 20 || strings.Contains(says, "HTTP") {
			t.Errorf("%s is refused with %q", name, says)
		}
		b.axe("an upload that is refused")
	}
	b.choose("[data-test=language]", "de")
	b.upload(written(t, "notes.txt", []byte("Dear diary")))
	b.says("#refused", "Diese Datei ist keine Firmware eines Roboters:")
	b.says("#refused [lang=en]", "firmware") // the sentence of the server
	if _, text := h.Owner(http.MethodGet, "/api/v1/firmware", ""); strings.Contains(text, "sha256") {
		t.Errorf("the catalogue is %s", text)
	}
	b.view("backup", "p-backup")
	b.give("#restore [name=file]", written(t, "diary.tar", []byte("Dear diary")))
	b.click("[data-test=restore]")
	b.click("p-dialog [data-test=yes]")
	b.sees("#refused")
}

// seeBrokenUploads checks that an upload that the owner stops, and one whose connection is lost, end with a sentence,
// and that nothing of them is stored.
func seeBrokenUploads(t *testing.T, c *chromium) {
	h := startAppliance(t)
	r, at := relayTo(t, h.LocalURL())
	b := c.comeIn(t, h)
	b.allow("ERR_EMPTY_RESPONSE", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_SOCKET_NOT_CONNECTED")
	b.open(at + "#/firmware")
	b.until("see.one('p-shell')?.link === 'fine' && see.has('#upload')")
	call(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{DownloadThroughput: -1, UploadThroughput: 100_000}}})
	image := written(t, "app.bin", simrobot.Image("1.5.0", 4<<20))
	b.upload(image)
	b.sees("#upload p-bar")
	b.click("#upload [data-test=cancel]")
	b.says("#refused", "cancelled")
	b.upload(image)
	b.sees("#upload p-bar")
	r.cut()
	b.says("#refused", "does not answer")
	if _, text := h.Owner(http.MethodGet, "/api/v1/firmware", ""); strings.Contains(text, "sha256") {
		t.Errorf("the catalogue is %s", text)
	}
}

// seeBackup checks that a backup can be downloaded completely, and that its data is restored after a restart.
func seeBackup(t *testing.T, c *chromium) {
	h := appliancetest.Configured(t, "")
	h.Admin(http.MethodPost, "/api/v1/memory", `{"text":"The cat is called Miso."}`, nil)
	b := c.visit(t, h, "#/backup")
	b.click("#download")
	b.sees("#made")
	file := written(t, "perch.tar", b.download("*.tar"))
	h.Admin(http.MethodPost, "/api/v1/memory", `{"text":"The cat is called Anko."}`, nil)
	b.allow(gone()...)
	b.give("#restore [name=file]", file)
	b.click("[data-test=restore]")
	b.click("p-dialog [data-test=yes]")
	h.Again()
	b.sees("#restored")
	b.view("memory", "p-memory")
	b.says("[data-test=memory]", "Miso")
	b.lacks("[data-test=memory]=Anko")
}
