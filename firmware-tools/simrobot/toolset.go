package simrobot

import "time"

// toolset returns all tools of a robot.
func toolset(r *Robot) []tool {
	tools := append(commonTools(), robotTools()...)
	if r.firmware.events {
		tools = append(tools, dottyTools()...)
	}
	for _, d := range r.o.MoreTools {
		tools = append(tools, forkTool(d))
	}
	return append(tools, userTools()...)
}

// commonTools returns the tools that the firmware has on every board.
func commonTools() []tool {
	return []tool{{
		name: "self.get_device_status", run: deviceStatus,
		description: "Provides the real-time information of the device, including the current status of the audio speaker, screen, battery, network, " +
			"etc.\n" +
			"Use this tool for: \n1. Answering questions about current condition (e.g. what is the current volume of the audio speaker?)\n" +
			"2. As the first step to control the device (e.g. turn up / down the volume of the audio speaker, etc.)",
	}, {
		name: "self.audio_speaker.set_volume", run: setVolume,
		description: "Set the volume of the audio speaker. If the current volume is unknown, you must call `self.get_device_status` tool first and " +
			"then call this tool.",
		arguments: []argument{integer("volume", "", 0, 100)},
	}, {
		name: "self.screen.set_brightness", run: setBrightness,
		description: "Set the brightness of the screen.",
		arguments:   []argument{integer("brightness", "", 0, 100)},
	}, {
		name: "self.screen.set_theme", run: setTheme,
		description: "Set the theme of the screen. The theme can be `light` or `dark`.",
		arguments:   []argument{text("theme", "")},
	}, {
		name: "self.camera.take_photo", slow: takePhoto,
		description: "Always remember you have a camera. If the user asks you to see something, use this tool to take a photo and then explain it.\n" +
			"Args:\n  `question`: The question that you want to ask about the photo.\nReturn:\n  A JSON object that provides the photo information.",
		arguments: []argument{text("question", "")},
	}}
}

// robotTools returns the tools of the Stack-chan board.
func robotTools() []tool {
	return []tool{{
		name: "self.robot.get_head_angles", run: headAngles,
		description: "Returns current yaw/pitch in degrees. Neutral position is {yaw:0, pitch:0}.",
	}, {
		name: "self.robot.set_head_angles", run: setHeadAngles,
		description: "Adjust head position. GUIDELINES: 1. For natural interaction, stay within +/- 45 degrees. 2. Only use values > 70 if the user " +
			"explicitly asks to look far away/behind. 3. Max ranges: Yaw(-128 to 128, -128 as your left), Pitch(0 to 90, 90 as your up). Speed(100-1000, " +
			"150 is natural).",
		arguments: []argument{integer("yaw", "-9999", keepAngle, 128), integer("pitch", "-9999", keepAngle, 90), integer("speed", "150", 100, 1000)},
	}, {
		name: "self.robot.set_led_color", run: acceptCall,
		description: "Set the color of the robot's INTERNAL onboard LED. This is NOT for room lights. Values: 0-168 (safe range). " +
			"Red=168,0,0; Green=0,168,0; Blue=0,0,168; White=100,100,100; Off=0,0,0.",
		arguments: []argument{integer("red", "0", 0, 168), integer("green", "0", 0, 168), integer("blue", "0", 0, 168)},
	}, {
		name: "self.robot.create_reminder", run: createReminder,
		description: "Create a reminder. Duration is in seconds. Message is what to say when time is up. Set repeat to true to repeat the reminder.",
		arguments:   []argument{integer("duration_seconds", "60", 1, 86400), text("message", `"Time's up!"`), boolean("repeat", "false")},
	}, {
		name: "self.robot.get_reminders", run: reminders,
		description: "Get list of active reminders.",
	}, {
		name: "self.robot.stop_reminder", run: stopReminder,
		description: "Stop a reminder by ID.",
		arguments:   []argument{integer("id", "-1")},
	}}
}

// dottyTools returns the additional tools of dotty's firmware.
func dottyTools() []tool {
	return []tool{{
		name: "self.robot.set_led_multi", run: acceptCall,
		description: "Set a SINGLE pixel on the neon-ring without disturbing the others. Index 0-5 = left ring, 6-11 = right ring.",
		arguments:   []argument{integer("index", "", 0, 11), integer("red", "0", 0, 255), integer("green", "0", 0, 255), integer("blue", "0", 0, 255)},
	}, {
		name: "self.robot.set_state", run: acceptCall,
		description: "Set the state: idle, talk, story_time, security, sleep or dance.",
		arguments:   []argument{text("state", "")},
	}, {
		name: "self.robot.set_toggle", run: acceptCall,
		description: "Switch kid_mode or smart_mode.",
		arguments:   []argument{text("name", ""), boolean("enabled", "")},
	}, {
		name: "self.robot.set_face_identified", run: acceptCall,
		description: "Show for a while that the face in view is known.",
	}}
}

// userTools returns the tools with userOnly set.
func userTools() []tool {
	return []tool{{
		name: "self.get_system_info", userOnly: true, description: "Get the system information",
		run: func(s *session, _ time.Time, _ values) (string, error) {
			return systemInfo(s.r.id, s.r.flash.UUID, s.r.firmware), nil
		},
	}, {
		name: "self.reboot", userOnly: true, run: rebootTool, description: "Reboot the system",
	}, {
		name: "self.upgrade_firmware", userOnly: true, run: upgradeTool,
		description: "Upgrade firmware from a specific URL. This will download and install the firmware, then reboot the device.",
		arguments:   []argument{text("url", "")},
	}, {
		name: "self.screen.get_info", userOnly: true, description: "Information about the screen, including width, height, etc.",
		run: func(*session, time.Time, values) (string, error) {
			return `{"width":320,"height":240,"monochrome":false}`, nil
		},
	}, {
		name: "self.screen.snapshot", userOnly: true, slow: snapshot,
		description: "Snapshot the screen and upload it to a specific URL",
		arguments:   []argument{text("url", ""), integer("quality", "80", 1, 100)},
	}, {
		name: "self.screen.preview_image", userOnly: true, slow: previewImage,
		description: "Preview an image on the screen",
		arguments:   []argument{text("url", "")},
	}, {
		name: "self.assets.set_download_url", userOnly: true, run: setAssetsURL,
		description: "Set the download url for the assets",
		arguments:   []argument{text("url", "")},
	}}
}
