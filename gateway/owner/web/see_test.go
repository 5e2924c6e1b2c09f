package web_test

import "testing"

// TestPage opens the pages of real appliances in a browser. The subtests share only the browser, and run in parallel.
func TestPage(t *testing.T) {
	c := startChromium(t, resolve)
	for name, see := range map[string]func(*testing.T, *chromium){
		"empty":                 seeEmpty,
		"lived in":              seeLivedIn,
		"other pages":           seePages,
		"coming in":             seeComingIn,
		"a link":                seeLink,
		"this machine":          seeThisMachine,
		"a code":                seeCode,
		"lockout":               seeLockout,
		"logging out":           seeLoggingOut,
		"a robot is adopted":    seeAdoption,
		"one of two clients":    seeTwoClients,
		"what wants a person":   seeWants,
		"refused check-ins":     seeRefused,
		"fifty robots":          seeFifty,
		"ask a robot":           seeAsk,
		"a tab is closed":       seeTab,
		"away":                  seeOffline,
		"targets":               seeTargets,
		"a restored house":      seeRestored,
		"added by hand":         seeAddByHand,
		"a robot":               seeRobot,
		"what is spoken":        seeSpeech,
		"music":                 seeMusic,
		"facts of robots":       seeFacts,
		"a mood":                seeMood,
		"two owners of a robot": seeTwoSettings,
		"a character":           seeCharacter,
		"the diary":             seeDiary,
		"ranked memory":         seeRankedMemory,
		"settings":              seeSettings,
		"engines":               seeEngines,
		"two removals":          seeTwoRemovals,
		"found engines":         seeFoundEngines,
		"models of speech":      seeSpeechModels,
		"a robot's choices":     seeRobotChoices,
		"what people want":      seeWhatPeopleWant,
		"the first steps":       seeFirstSteps,
		"the first talk":        seeFirstTalk,
		"the first robot":       seeFirstRobot,
		"a new name":            seeNewName,
		"six languages":         seeLanguages,
		"two configurations":    seeTwoConfigurations,
		"memory":                seeMemory,
		"two owners":            seeTwoOwners,
		"notifications":         seeNotifications,
		"questions":             seeQuestions,
		"timers":                seeTimers,
		"a warning":             seeWarning,
		"a spoken first talk":   seeSpokenFirstTalk,
		"rollouts":              seeRollouts,
		"uploads are refused":   seeRefusedUploads,
		"uploads break off":     seeBrokenUploads,
		"backup":                seeBackup,
		"strangers write HTML":  seeHostile,
		"the stream is cut":     seeCut,
		"turns":                 seeTurns,
		"a week":                seeWeek,
		"views while away":      seeAway,
		"ingress":               seeIngress,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			see(t, c)
		})
	}
}
