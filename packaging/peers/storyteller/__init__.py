"""An integration of Home Assistant with a conversation agent that writes its answer bit by bit, as a language model does.

It writes the second sentence once input_boolean.heard is on.
"""

import asyncio
import json
import pathlib

from homeassistant.components import conversation
from homeassistant.components.conversation.const import DATA_COMPONENT
from homeassistant.helpers import intent
from homeassistant.helpers.chat_session import async_get_chat_session

STORIES = json.loads(pathlib.Path(__file__).with_name("stories.json").read_text())


class Storyteller(conversation.ConversationEntity):
    """The agent conversation.storyteller."""

    _attr_name = "Storyteller"
    _attr_supports_streaming = True
    supported_languages = "*"

    async def tell(self, language):
        """Returns the story in pieces that end within words."""
        first, second = STORIES[language[:2]]
        yield {"role": "assistant"}
        for i in range(0, len(first), 5):
            yield {"content": first[i:i + 5]}
        yield {"content": " " + second[:3]}
        async with asyncio.timeout(60):
            while not self.hass.states.is_state("input_boolean.heard", "on"):
                await asyncio.sleep(0.02)
        yield {"content": second[3:]}

    async def async_process(self, user_input):
        with (async_get_chat_session(self.hass, user_input.conversation_id) as session,
              conversation.async_get_chat_log(self.hass, session, user_input) as log):
            answer = intent.IntentResponse(language=user_input.language)
            async for content in log.async_add_delta_content_stream(self.entity_id, self.tell(user_input.language)):
                answer.async_set_speech(content.content)
            return conversation.ConversationResult(response=answer, conversation_id=session.conversation_id)


async def async_setup(hass, config):
    await hass.data[DATA_COMPONENT].async_add_entities([Storyteller()])
    return True
