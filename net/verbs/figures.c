/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/figures.h"

struct counter g_figures[RDMA_FIGURES] = {
	[RDMA_CONNECTIONS] = {"rdma_connections", "connections that opened over RDMA", 0},
	[RDMA_SENDS] = {"rdma_sends", "sends posted, pure ACKs not included", 0},
	[RDMA_SEND_POSTS] = {"rdma_send_posts", "calls that posted sends: doorbells", 0},
	[RDMA_SIGNALED] = {"rdma_signaled", "sends that asked for a completion", 0},
	[RDMA_SOLICITED] = {"rdma_solicited", "sends that asked for an event at the peer", 0},
	[RDMA_INLINE] = {"rdma_inline", "sends whose bytes were copied into the request", 0},
	[RDMA_PURE_ACKS] = {"rdma_pure_acks", "credits sent by themselves, without data to carry them", 0},
	[RDMA_SEND_WINDOW_CLOSED] = {"rdma_send_window_closed", "times that bytes had to wait for a window", 0},
	[RDMA_RETRIES_ENOMEM] = {"rdma_retries_enomem", "times that the device had no memory for a send just then", 0},
	[RDMA_RECEIVES] = {"rdma_receives", "messages with payload received", 0},
	[RDMA_RECV_POSTS] = {"rdma_recv_posts", "calls that posted receives", 0},
	[RDMA_ZERO_COPY] = {"rdma_zero_copy", "messages handed over in the block that they came in", 0},
	[RDMA_COPIED] = {"rdma_copied", "messages copied out of their block, being short or by flag", 0},
	[RDMA_COPIED_SHORT_OF_BLOCKS] = {"rdma_copied_short_of_blocks",
					 "messages copied to ordinary memory since the pool was empty", 0},
	[RDMA_STARVED] = {"rdma_starved", "times that a receive slot had to wait for a block", 0},
	[RDMA_EARLY] = {"rdma_early", "messages that came before their connection's ACK", 0},
	[RDMA_ERRORS] = {"rdma_errors", "connections that ended with an RDMA error", 0},
};

int
figures_add(void)
{
	return counter_add_table(g_figures, RDMA_FIGURES);
}
